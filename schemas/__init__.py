"""The form of the data: Arrow schemas and versioned JSON records. Imports pyarrow and pydantic only."""
