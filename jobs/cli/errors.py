"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

EMPTY_FILE = Message("check.empty-file", "{file} is empty: a JSON object with question, context and response is wanted")
NOTHING_GIVEN = Message(
    "check.nothing-given",
    "nothing to check: give --question, --context and --response, a JSON file, or a JSON object on standard input",
)
NO_OBJECT = Message("check.no-object", "{file}, line {line}: a JSON object is wanted, and this is a {type}")
UNREADABLE_FILE = Message("check.unreadable-file", "{file}: {reason}")
NO_UTF8 = Message("check.no-utf8", "{file} is no UTF-8 (byte {byte})")
GIVEN_TWICE = Message("check.given-twice", "give FILE, or --question, --context and --response, not both")
NO_JSON = Message("check.no-json", "{file}, line {line}: no JSON: {reason} (column {column})")
NESTED_TOO_DEEPLY = Message("check.nested-too-deeply", "{file}, line {line}: it is nested too deeply")
JUDGEMENTS_WITHOUT_EXPLANATIONS = Message(
    "options.judgements-without-explanations",
    "--judgements are of explanations: name --explanations too",
)
ONE_SLICE_OF_EXPLANATIONS = Message(
    "options.one-slice-of-explanations",
    "explanations are measured by one --slice, and --where goes with --label",
)
STRATIFY_WITHOUT_SENTENCES = Message(
    "options.stratify-without-sentences",
    "--stratify draws a sample: say with --sentences how large it is",
)
LABELS_WITHOUT_LABEL = Message(
    "options.labels-without-label",
    "--labels names a Parquet file: say with --label which of its columns holds the labels",
)
EMPTY_SAMPLE = Message("options.empty-sample", "--sample 0 would score nothing: give a share above 0, such as 0.1")
NO_LABELS = Message(
    "options.no-labels",
    "name the column of the labels, --label COLUMN, or a file of reviewers, --labels FILE.jsonl",
)
LABELS_SAY_IT = Message(
    "options.labels-say-it",
    "{labels} defines the meaning of its labels itself: leave out all label options but --labels",
)
WHERE_SYNTAX = Message("options.where-syntax", "--where {condition!r} must be COLUMN=VALUE, such as split=train")
TO_NOT_WRITABLE = Message("options.to-not-writable", "{path} can't be written: {reason}. Name another file with --to")
TO_FOREIGN_PAGE = Message("options.to-foreign-page", "{path} exists and is no {kind} page of ours: name another file")
GPUS_WITHOUT_THROUGHPUT = Message(
    "options.gpus-without-throughput",
    "--gpus and --gpu-tokens-per-second go together: a throughput that nobody measured is a guess",
)
