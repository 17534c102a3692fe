"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

ONE_KIND_OF_LABEL = Message(
    "train.one-kind-of-label",
    "{file} has {supported} supported and {unsupported} unsupported labels: both are needed",
)
WRONG_VALUE = Message(
    "train.wrong-value",
    "{file}: column {column!r} holds {value} in row {row}; it must hold {wanted}: rename it, or fix it",
)
LABELS_OF_OTHER_ROWS = Message(
    "train.labels-of-other-rows",
    "labels {file} speak of no row of {output}: --labels goes with the output that was reviewed",
)
FINISHED_ALREADY = Message("train.finished-already", "{path} holds a finished adapter: give another --out, or move it away")
SEVERAL_SLMS = Message("train.several-slms", "the job file has {slms} SLMs: name one with --slm")
NO_SUCH_SLM = Message("train.no-such-slm", "the job file has no SLM {slm!r}; it has {slms}")
CONTEXTS_OF_ONE_KIND = Message(
    "train.contexts-of-one-kind",
    "{file}: the contexts {which} have no labels of both kinds: give more labeled rows, or set another held_out with "
    "--settings",
)
