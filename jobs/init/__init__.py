"""Write a job file for new logs (`ragassay init`)."""
