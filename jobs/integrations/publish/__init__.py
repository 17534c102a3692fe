"""`publish`: verdicts to where people look at their traces; one file a tool."""
