"""`ragassay tune`: labelled logs in, a LoRA adapter out."""
