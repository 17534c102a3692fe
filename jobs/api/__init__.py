"""One answer, a table, or a Ray Data pipeline of one's own: the stages of a job without an output folder, and without Ray."""
