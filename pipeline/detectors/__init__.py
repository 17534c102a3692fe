"""Members of the ensemble that need no language model: what of a sentence its context has.

terms, entities -> frequencies -> novelty, attribution, hybrid -> detect (rows in, members out)
"""
