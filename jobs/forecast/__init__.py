"""`ragassay plan`: estimate the work, time and price of a run from metadata, a sample of rows and a trial of the engines."""
