"""Rows of `scored/` for whoever comes next: training examples, preference pairs, sentences for reviewers."""
