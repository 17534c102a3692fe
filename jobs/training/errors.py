"""Error messages of `tune`."""

from ragassay.pipeline.errors import Message

ONE_KIND_OF_LABEL = Message(
    "train.one-kind-of-label",
    "{file} has {supported} supported and {unsupported} unsupported labels. Add labels of the missing kind: both are needed",
)
WRONG_VALUE = Message(
    "train.wrong-value",
    "{file}: column {column!r} has the value {value} in row {row}, but must contain {expected}. Fix it, or rename the column",
)
FINISHED_ALREADY = Message("train.finished-already", "{path} contains a finished adapter. Use another --out, or move it away")
SEVERAL_SLMS = Message("train.several-slms", "the job file has {slms} SLMs. Select one with --slm")
NO_SUCH_SLM = Message("train.no-such-slm", "the job file has no SLM {slm!r}. Use one of: {slms}")
CONTEXTS_OF_ONE_KIND = Message(
    "train.contexts-of-one-kind",
    "{file}: the contexts {which} have labels of one kind only. Add labeled rows, or set another held_out with --settings",
)
