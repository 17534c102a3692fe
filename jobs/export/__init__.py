"""Export rows of `scored/`: training examples, preference pairs, sentences for reviewers."""
