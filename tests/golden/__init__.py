"""The golden corpus: normalized outputs of about fifty runs and commands over small logs, compared with committed files.

`python -m tests.golden` runs and compares every case; `--update` rewrites `expected/`. The cases use only the program's
public surface (command line, job file, files in OUTPUT, library), so they survive a rewrite of its internals.
"""
