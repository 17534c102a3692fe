"""What happens to a batch: split, score, normalize, aggregate, decide. Pure functions and thin actors; imports schemas.

In the order of the flow: `split` -> `prompt`, `windows`, `engines`, `score` -> `moments`, `normalize` ->
`aggregate` -> `threshold`.
"""
