"""What is fitted to labels: member weights, thresholds, certified thresholds, probabilities. Pure functions."""
