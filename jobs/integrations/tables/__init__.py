"""Write verdicts to a Delta or Iceberg table (`ragassay table`), one commit per partition, without duplicates."""
