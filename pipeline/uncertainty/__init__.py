"""How sure a language model is of a text that stands, or that it wrote, behind question and context: AttenHScore and others."""
