"""Plan 2: moments -> mu and sigma -> verdicts -> scored Parquet. Needs no model."""
