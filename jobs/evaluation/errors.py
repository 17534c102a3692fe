"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

ONE_REVIEWER = Message("labels.one-reviewer", "{files}: {reviewers}: agreement needs two reviewers, in one file each or in one")
OF_OTHER_ROWS = Message(
    "labels.of-other-rows",
    "output {output} has none of the rows that these files speak of: name the one that was reviewed",
)
NO_REVIEW_LINES = Message(
    "labels.no-review-lines",
    "{file}: agreement is of reviewers' JSON Lines, as the review page saves them (FILE{suffix})",
)
NO_LABELS = Message("calibrate.no-labels", "target {target} needs labels: name their column with --label")
DRAWN_UNEVENLY = Message(
    "calibrate.drawn-unevenly",
    "labels {file}: the labelled rows were drawn with different inclusion probabilities, as a stratified sample is, and a "
    "precision certified on them would be the sample's, not the logs': certify with labels of a page that `ragassay review` "
    "has drawn without --balanced",
)
DELTA_OUT_OF_RANGE = Message(
    "calibrate.delta-out-of-range",
    "--certify takes the probability of being wrong, between 0 and 1, not {delta:g}",
)
CALIBRATED_ALREADY = Message(
    "calibrate.calibrated-already",
    "the last verdicts come from a calibration, whose rule may have been fitted to the very labels that would certify: run "
    "`ragassay finalize` without it first",
)
ONLY_PRECISION = Message("calibrate.only-precision", "only a precision can be certified, not {target}")
NO_SCORE = Message(
    "calibrate.no-score",
    "no response has a score under these members, so that no threshold can be found for {target}",
)
NOT_CERTIFIED = Message(
    "calibrate.not-certified",
    "{target} can't be certified at delta {delta:g}: of the {rows} independent labelled rows that certify (one an item, half "
    "of the items), the most promising threshold selects {selected} and {correct} of them are {kind}, so the precision is "
    "only known to be at least {bound:.3f}. Even without one mistake {needed} selected rows are needed: label more items, "
    "ask for less, or leave --certify out",
)
OUT_OF_REACH = Message(
    "calibrate.out-of-reach",
    "no threshold reaches {target} for {kind} responses on these {rows} labelled rows: the best precision there is "
    "{best:.3f}. Ask for less, or take better SLMs",
)
NO_ROW = Message("estimate.no-row", "output {output} has no scored row to speak of ({left_out:,} left out by --where)")
NO_LABEL = Message(
    "estimate.no-label",
    "labels {labels!r}: none of the {rows:,} scored rows has a label of its response; {silent:,} are spoken of without one "
    "(unsure, or some of their sentences only)",
)
SOME_PROBABILITIES = Message(
    "estimate.some-probabilities",
    "labels {file}: {missing} of {rows} labelled rows have no inclusion_probability, and the others have one: give it in "
    "every line, or in none if all are one simple random sample",
)
OF_SENTENCES = Message(
    "estimate.of-sentences",
    "labels {file}: lines of {row} name different strata or inclusion probabilities. They must belong to the response and be "
    "the same in all of its lines: a sample of sentences is no sample of responses",
)
TOO_MANY_SLICES = Message(
    "estimate.too-many-slices",
    "column {column!r} has more than {most:,} values: --slice takes one with fewer, such as a tenant",
)
NO_JUDGED_LABELS = Message(
    "evaluate.no-judged-labels",
    "a cascade is drawn by labelled responses that a judge has decided, correct and hallucinated ones: add `escalation: "
    "{{judge: …, share: 1}}` to the job file and run `ragassay escalate OUTPUT --config FILE`",
)
SIMILARITY_OUT_OF_RANGE = Message(
    "export.similarity-out-of-range",
    "near duplicates: the similarity must be above 0 and at most 1, not {similarity:g}",
)
NO_NEAR_DUPLICATES = Message(
    "export.no-near-duplicates",
    "near duplicates are left out of messages and parquet only, not of {format}: drop the option",
)
OPTIONS_OF_FLAGGED = Message(
    "export.options-of-flagged",
    "flagged sentences have no prompt and are never clean: drop the options on system, context and clean",
)
ANSWERS_NOT_WRITABLE = Message(
    "evaluate.answers-not-writable",
    "{path} can't be written ({reason}), and a judge's answers, which cost money, are kept there: give yourself the right to "
    "write into OUTPUT, or leave evaluation.reference out of the job file",
)
NO_SCORED_ROW = Message(
    "output.no-scored-row",
    "no row of this output has a score: run `ragassay finalize OUTPUT`, or see by `status` and `error` in scored/ why its "
    "rows failed",
)
NO_SENTENCE_LABELS = Message(
    "labels.no-sentence-labels",
    "column {column!r} holds no sentence labels: lists of structs with whole numbers start and end",
)
NONE = Message("labels.none", "{where}: none of the scored rows has a label ({unlabelled} rows without one{more})")
ONE_KIND = Message(
    "labels.one-kind",
    "{where}: all {rows} labelled rows are {labels}; both correct and hallucinated ones are needed",
)
OLD_STATISTICS = Message(
    "output.old-statistics",
    "statistics of partition {partition!r} are missing or old: run `ragassay finalize` first",
)
OWN_COLUMN = Message("labels.own-column", "column {column!r} is written by RAGAssay: name a column with labels of people")
COLUMN_TYPE = Message("labels.column-type", "label column {column!r} has type {type}: give booleans, 0 and 1, or {forms}")
UNKNOWN_VALUES = Message(
    "labels.unknown-values",
    "label column {column!r} has type {type} and values that are no label ({values}). Labels are {forms}; name another "
    "column, or values that count as no label in evaluation.ignore",
)
HALF_A_SPAN = Message(
    "labels.half-a-span",
    "labels {file}: some rows have no start or end: give both, or leave the two columns out",
)
TRUE_UNCLEAR = Message(
    "labels.true-unclear",
    "label column {column!r} holds {type}: set evaluation.true_means in the job file to {supported} or {hallucinated}",
)
ODD_NUMBERS = Message("labels.odd-numbers", "label column {column!r} has the value(s) {values}: numbers must be 0 or 1")
CONTRADICTION = Message("labels.contradiction", "labels {file} say both {label} and {other_label} of {item}: keep one")
PROBABILITY_OUT_OF_RANGE = Message(
    "labels.probability-out-of-range",
    "labels {file}: {column} of {row} is {value}; it must be a number from {least:g} to 1, the chance with which the row was "
    "drawn",
)
NESTED_SLICE = Message("report.nested-slice", "column {column!r} holds {type}: slices are of plain values")
REVIEW_NO_ROW = Message("review.no-row", "output {output} has no scored row{which}{where}")
SAMPLE_TOO_SMALL = Message(
    "review.sample-too-small",
    "a stratified sample takes a row of each of {strata} strata: --sample {least} at least",
)
NO_FILE = Message("labels.no-file", "labels {file} can't be read: there is no such file")
REVIEWERS_DISAGREE = Message(
    "labels.reviewers-disagree",
    "labels {file}: {reviewer} says {label} and {other} {other_label} of {item}{more}: give one reviewer's file, or one in "
    "which they have settled it; `ragassay agreement` lists the rows to talk about",
)
NO_JSON_LINES = Message("labels.no-json-lines", "labels {file} can't be read as JSON Lines: {reason}")
UNREADABLE = Message("labels.unreadable", "labels {file}: {reason}")
WRONG_LINE = Message("labels.wrong-line", "labels {file}, line {line}: {reason}")
ROW_UNCLEAR = Message(
    "labels.row-unclear",
    "labels {file}: {row} is {rows} rows of this output: name their partitions in a column {column!r}, such as `ragassay "
    "export --format flagged` writes",
)
NO_ROWS = Message("export.no-rows", "output {output}: scored/ has no rows: run `ragassay finalize {output}` first")
NOTHING_PASSES = Message(
    "export.nothing-passes",
    "output {output}: {what} ({rows:,} rows: {why}). Nothing was written; `ragassay finalize` gives verdicts under another "
    "threshold",
)
