"""Optional parts that other tools need: traces in; tables, published verdicts and lineage events out."""
