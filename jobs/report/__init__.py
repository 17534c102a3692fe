"""One self-contained HTML page about a scored output: gather -> charts -> page."""
