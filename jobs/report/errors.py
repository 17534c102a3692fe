"""Messages of the errors that report and review raise."""

from ragassay.pipeline.errors import Message

NESTED_SLICE = Message(
    "report.nested-slice",
    "column {column!r} has type {type}: --slice needs a column of plain values",
)
REVIEW_NO_ROW = Message("review.no-row", "output {output} has no scored row{which}{where}: change --where, or score rows first")
SAMPLE_TOO_SMALL = Message(
    "review.sample-too-small",
    "--sample is too small: a stratified sample needs a row of each of {strata} strata. Give --sample {minimum} or more",
)
