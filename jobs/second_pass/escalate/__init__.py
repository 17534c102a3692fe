"""`escalate`: a judge decides doubtful responses of `scored/`; its output is `escalated/`."""
