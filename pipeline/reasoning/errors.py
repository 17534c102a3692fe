"""Errors of this folder."""

from ragassay.pipeline.errors import Message

NO_USAGE = Message(
    "explain.no-usage",
    "the reasoner's server reports no token counts, so a budget in US dollars can't be kept: omit --budget-usd and use "
    "--sample",
)
