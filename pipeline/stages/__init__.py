"""The stages of a plan, one file per stage; the two around a judge share one."""
