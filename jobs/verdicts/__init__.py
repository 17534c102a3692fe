"""The steps `fit` and `decide`: statistics -> mu and sigma -> verdicts -> scored Parquet. They need no model."""
