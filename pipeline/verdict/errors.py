"""Error messages of the verdicts."""

from ragassay.pipeline.errors import Message

NO_SENTENCE = Message(
    "fit.no-sentence",
    "member {member!r} has no scored sentence, so its mean and deviation can't be fitted: see `status` and `error` in raw/ for "
    "the reason, or use frozen statistics (verdict.normalize.source: frozen)",
)
NO_DEVIATION = Message(
    "fit.no-deviation",
    "member {member!r} gave all {sentences} sentences the same value {value:.6g}, so sigma = 0 and no score can be "
    "normalized: score more than one sentence, check its prompt and labels, or use frozen statistics "
    "(verdict.normalize.source: frozen)",
)
