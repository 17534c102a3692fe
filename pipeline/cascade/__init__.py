"""The cascade: which responses a judge decides, and how its decisions replace verdicts of the ensemble."""
