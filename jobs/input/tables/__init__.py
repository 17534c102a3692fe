"""Tables as inputs: their files as of a version, and what came in between two versions."""
