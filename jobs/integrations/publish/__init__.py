"""Send verdicts to the traces in a tracing tool (`ragassay publish`), without duplicates."""
