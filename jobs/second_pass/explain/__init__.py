"""`explain`: a reasoner explains flagged sentences of `scored/`; its output is `explanations/`."""
