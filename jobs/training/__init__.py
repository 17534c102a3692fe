"""Train a LoRA adapter on labeled logs (`ragassay tune`)."""
