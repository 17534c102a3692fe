"""What errors about an output folder say."""

from ragassay.pipeline.errors import Message

# the folder and its lock
MISSING = Message(
    "output.missing", "output {output} does not exist or has no {manifest}: run `ragassay run INPUT {output}` first"
)
FOREIGN = Message("output.foreign", "output {output} holds Parquet files but no {manifest}: give a new or empty folder")
NOT_WRITABLE = Message("output.not-writable", "output {output} can't be written: {reason}")
LOCKED = Message(
    "output.locked",
    "output {output} is in use by another run{holder}: wait until it ends, or have this command wait longer for it "
    "(runtime.wait_minutes){lease}",
)
LEASE_LOST = Message(
    "output.lease-lost",
    "output {output}: this run stopped, because its lock was not renewed for {minutes:.0f} minutes, or another run took the "
    "lock. Once no other run writes there, run the same command again: it resumes",
)
REWRITTEN = Message(
    "output.rewritten",
    "{where} is being rewritten: run the command again when the run that writes it has ended; if that run broke off, "
    "`ragassay finalize {output}`, or the same run again, completes it",
)

# the manifest, and what was scored under it
UNREADABLE_MANIFEST = Message("output.unreadable-manifest", "{path} can't be read: {reason}")
UNREADABLE_SHARD = Message(
    "output.unreadable-shard",
    "{path} can't be read ({reason}), and with it the names of input files that are scored: bring it back from a copy of the "
    "output folder",
)
OTHER_VERSION = Message(
    "output.other-version",
    "output {output} was written by another version of this program ({part} {version}, not {wanted}): score its logs anew into "
    "another OUTPUT",
)
OTHER_SETTINGS = Message(
    "output.other-settings",
    "output {output} holds scores made under other settings:\n{lines}\nTake the settings back, or give another OUTPUT for the "
    "new ones",
)
OTHER_COLUMN_TYPE = Message(
    "output.other-column-type",
    "a column has another type than in logs that this output already holds: {reason}. Cast it, rename it, or give "
    "another OUTPUT",
)
NO_TEXT = Message(
    "output.no-text",
    "output {output} holds no text (output.drop_text), and {need} needs it: find the rows in the logs by their row_id, or "
    "score these logs into another OUTPUT without output.drop_text",
)

# scored/
NO_VERDICTS = Message("output.no-verdicts", "output {output} has no verdicts yet: run `ragassay finalize {output}` first")
NO_COLUMN = Message("output.no-column", "output {output} has no column {column!r}{setting}; it has {columns}")
UNREADABLE_ROWS = Message("output.unreadable-rows", "{path} can't be read: {reason}{hint}")

# explanations/ and escalated/
OTHER_SIDECAR = Message(
    "output.other-second-pass",
    "output {output} holds {what} made under other settings:\n{lines}\nTake the settings back; or, to have all of it made "
    "anew, {advice}",
)
UNBALANCED = Message(
    "output.unbalanced",
    "{path} has {outcomes} outcomes, of {different} different ones, and {wanted} were to be done: run the same command again",
)

# calibration files
NO_CALIBRATION = Message(
    "calibration.missing", "calibration {path} does not exist: make one with `ragassay calibrate OUTPUT --label COLUMN`"
)
UNREADABLE_CALIBRATION = Message("calibration.unreadable", "calibration {path} can't be read: {reason}")
OTHER_SCORES = Message("calibration.other-scores", "calibration {path} was fitted to other scores; calibrate anew:\n{lines}")
NOT_A_CALIBRATION = Message("calibration.foreign-file", "{path} exists and is no calibration: name another file")

# --partitions
NO_KEY = Message("partitions.no-key", "--partitions: the partitions of the output have no key {key!r}")
NO_PARTITION = Message("partitions.none", "output: {reason}")
FILTER_SYNTAX = Message(
    "partitions.syntax",
    "--partitions {filter!r} can't be read at {rest!r}: write comparisons of hive keys by = != < <= > >=, joined by `and`, "
    'such as "dt>=2026-11-01 and tenant=shop"',
)
FILTER_WITHOUT_AND = Message("partitions.no-and", "--partitions {filter!r}: {rest!r} must begin with `and`; there is no `or`")
NO_SUCH_KEY = Message("partitions.unknown-key", "input {input} is not partitioned by {keys} (--partitions): {partitioned_by}")
