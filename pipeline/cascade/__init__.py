"""The cascade: a judge decides doubtful responses, and its decisions replace verdicts of the ensemble."""
