"""`ragassay plan`: what a job will take, told from the log's metadata, a sample of its rows, and a short run of its engines."""
