"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NO_SENTENCE = Message(
    "fit.no-sentence",
    "member {member!r} has no scored sentence to fit a mean and deviation from: see `status` and `error` in raw/ for why its "
    "rows failed, or use frozen statistics (verdict.normalize.source: frozen)",
)
NO_DEVIATION = Message(
    "fit.no-deviation",
    "member {member!r} gave all {sentences} sentences the same value {value:.6g}, so sigma = 0 and no score can be "
    "normalized: score more than one sentence, check its prompt and labels, or use frozen statistics "
    "(verdict.normalize.source: frozen)",
)
