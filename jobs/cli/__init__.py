"""The command line: one file a group of commands; heavy imports wait until a command runs."""
