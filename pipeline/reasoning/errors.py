"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NO_USAGE = Message(
    "explain.no-usage",
    "the reasoner's server does not report how many tokens it used, so a budget in money can't be kept: leave --budget-usd "
    "out, and limit --sample",
)
