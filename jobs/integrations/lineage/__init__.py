"""OpenLineage: a run tells a server what it read and wrote."""
