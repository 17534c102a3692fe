"""Progress of a command: counted where the work is done; shown as bars, lines or JSON."""
