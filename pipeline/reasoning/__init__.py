"""Why a flagged sentence is a hallucination: what a larger model is asked, and how its answer is read (arXiv 2408.12748)."""
