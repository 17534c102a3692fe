"""Engines that give P(next token) for chosen tokens, behind one small protocol (`protocol.Engine`)."""
