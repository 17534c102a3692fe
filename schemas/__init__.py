"""What data looks like: Arrow schemas and versioned JSON records. Imports pyarrow and pydantic only."""
