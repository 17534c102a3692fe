"""What plans are made of: steps from table to table, one row a response."""
