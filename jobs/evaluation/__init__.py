"""Compare scores with labels: evaluation, calibration, comparison, estimates, agreement."""
