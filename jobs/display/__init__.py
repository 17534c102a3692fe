"""Output of commands: lines, tables, and log text that is safe to print."""
