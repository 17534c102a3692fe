"""`ragassay plan`: what a job will take, estimated from the metadata, a sample of rows and a trial of the engines."""
