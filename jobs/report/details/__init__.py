"""Make the folded sections at the end of the page."""
