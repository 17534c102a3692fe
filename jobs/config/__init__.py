"""The job file: one YAML document, checked as a whole before anything runs."""
