"""Engines that return P(next token) for chosen tokens, behind one small protocol (`protocol.Engine`)."""
