"""How far a command is: counted where the work is done, shown as bars, lines or JSON."""
