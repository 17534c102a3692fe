"""The stages of a plan, one file per stage."""
