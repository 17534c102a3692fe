"""`explain`: a reasoner explains deciding sentences of `scored/`; its output is `explanations/`."""
