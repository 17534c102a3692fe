"""The step `score`: logs -> sentences -> values of the members -> raw Parquet. It resumes after an interruption."""
