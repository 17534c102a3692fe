"""Read traces that tracing tools export, and join the spans of each trace into one row of logs."""
