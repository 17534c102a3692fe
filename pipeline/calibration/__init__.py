"""Fit member weights, thresholds, certified thresholds and probabilities to labels. Pure functions."""
