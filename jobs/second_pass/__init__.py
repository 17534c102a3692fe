"""Second passes over scored rows: explanations of deciding sentences, and escalation to a judge."""
