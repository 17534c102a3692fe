"""Train an SLM as a verifier: the loss over token trees, LoRA, and corruptions of supported sentences."""
