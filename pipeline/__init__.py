"""Process a batch of rows: split, score, normalize, aggregate, decide. Pure functions and thin actors. Imports schemas.

In the order of the flow: `split` -> `prompt`, `windows`, `engines`, `score` -> `moments`, `normalize` ->
`aggregate` -> `threshold`.
"""
