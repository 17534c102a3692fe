"""One small language model (SLM): its prompts, context windows and scores of rows."""
