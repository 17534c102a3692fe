"""Second passes over scored rows: explanations of flagged sentences, and escalation to a judge."""
