"""`escalate`: a second plan, over doubtful rows of `scored/`, whose outcome is `escalated/`; the judge has the last word."""
