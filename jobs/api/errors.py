"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

MISSING_FIELD = Message("check.missing-field", "{answer} has no {fields}{given}")
NO_UNICODE = Message("check.no-unicode", "a text holds half a character ({character!a}), which is no Unicode")
FIELD_TYPE = Message("check.field-type", "{answer}: {field!r} must be {wanted}, and is {found}")
NO_FRAME = Message(
    "judge.no-frame",
    "a polars.DataFrame, pandas.DataFrame or pyarrow.Table is wanted, and this is a {type}{advice}",
)
COLUMN_NAME = Message("judge.column-name", "names of columns must be texts, and {column!r} is a {type}: rename it")
MIXED_COLUMN = Message("judge.mixed-column", "a column mixes types, or has one that is no plain data: {reason}")
FAST_AND_JOB = Message("judge.fast-and-job", "fast judges by the three default detectors alone: leave it out, or the job file")
NO_VERDICTS = Message(
    "judge.no-verdicts",
    "output {output} has no verdicts to judge like: run `ragassay finalize {output}` first",
)
OTHER_MEMBERS = Message("judge.other-members", "output {output} was judged by {members}, and the job has {wanted}")
MISSING_COLUMNS = Message("show.missing-columns", "rows as `judge` gives them are wanted, and these have no {columns}")
OTHER_SCORES = Message(
    "judge.other-scores",
    "output {output} holds scores of other members or settings:\n{lines}\nName its own job file (--config)",
)
