"""Tables as inputs: the files of a version, and the rows added between two versions."""
