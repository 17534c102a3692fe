"""Prompts packed into one sequence, every shared prefix once, and the attention over it: for training, and for reading."""
