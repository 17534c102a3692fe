"""`explain`: a second plan, over the flagged rows of `scored/`, whose outcome is `explanations/`."""
