"""One small language model (SLM) and what it is asked: prompts, windows, scores of rows."""
