"""Prepare text before any model: sentences, clauses, citations, languages, redaction, repeats, near-duplicates."""
