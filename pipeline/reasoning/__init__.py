"""Explain why a sentence was flagged, with a larger model (arXiv 2408.12748)."""
