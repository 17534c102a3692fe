"""The golden corpus: outputs of some fifty runs and commands over small logs, normalized and compared with committed files.

`python -m tests.golden` makes every case and compares it; `--update` writes `expected/` anew. The cases drive the program by
its public surface alone (command line, job file, files in OUTPUT, library), so they survive a rewrite of its internals.
"""
