"""From scores to decisions: labels, evaluation, calibration, drift, report, export."""
