"""Token trees: prompts packed into one sequence that contains every shared prefix once, and the attention over it."""
