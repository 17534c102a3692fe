"""Compute verdicts from the members' values: moments, normalization, ensemble, aggregation, threshold, drift."""
