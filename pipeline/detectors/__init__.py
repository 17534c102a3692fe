"""Detectors: members of the ensemble that measure without a language model how much of a sentence its context contains.

terms, entities -> frequencies -> novelty, attribution, hybrid -> detect (rows in, members out)
"""
