"""Slow tests: faults injected many times, real servers, realistic exports; `make soak` writes the table of faults."""
