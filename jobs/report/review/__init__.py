"""Make a page in which people label a sample of a scored output: sample -> rows -> page."""
