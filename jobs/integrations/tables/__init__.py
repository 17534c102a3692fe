"""`ragassay table`: verdicts written into a table, partition by partition; written again, nothing changes."""
