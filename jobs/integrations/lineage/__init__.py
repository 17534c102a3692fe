"""Send OpenLineage events: which data a run reads and writes."""
