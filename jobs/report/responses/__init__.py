"""Make the cards of the worst responses: read the rows, mark their texts, state in words what is wrong."""
