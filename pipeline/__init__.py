"""Process a batch of rows: split, score, normalize, aggregate, decide. Pure functions and thin actors. Imports schemas.

In the order of the flow: `text/split` -> `slm/`, `engines/`, `uncertainty/`, `detectors/` -> `verdict/` -> `finalize`.
"""
