"""Uncertainty scores: how certain a language model is of a response, given question and context. AttenHScore and others."""
