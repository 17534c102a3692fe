"""Training an SLM to judge: prompts packed into token trees, their loss, and corruptions of supported sentences."""
