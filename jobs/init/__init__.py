"""`ragassay init`: a job file for logs that nobody has described yet."""
