"""From values to verdicts: moments, normalise, ensemble, aggregate, threshold, drift."""
