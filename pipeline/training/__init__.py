"""Training an SLM to judge: the loss over token trees, and corruptions of supported sentences."""
