"""Second passes over scored rows: explanations of flagged sentences, and the cascade to a larger judge."""
