"""The command line: one file per help panel. Heavy imports wait until a command runs."""
