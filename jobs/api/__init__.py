"""The Python API: check an answer, judge a table, or get stages for a Ray Data pipeline, without an output folder."""
