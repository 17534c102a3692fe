"""Plan 1, `score`: logs -> sentences -> members' values -> raw Parquet, resumable."""
