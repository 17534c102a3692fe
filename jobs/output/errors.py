"""Error messages about an output folder."""

from ragassay.pipeline.errors import Message

# the folder and its lock
MISSING = Message(
    "output.missing",
    "output {output} does not exist or has no {manifest}: run `ragassay run INPUT {output}` first",
)
FOREIGN = Message(
    "output.foreign",
    "output {output} contains other files, such as {file}, and no {manifest}: choose a new or empty folder, as in "
    "`ragassay run LOGS OUTPUT`",
)
IS_LOGS = Message(
    "output.is-logs",
    "{output} contains logs, not an output of ragassay: run `ragassay run {output} OUTPUT` first, then name OUTPUT here",
)
PART_OF_OUTPUT = Message("output.is-part", "{output} is a part of the output {parent}: name {parent} instead")
NOT_WRITABLE = Message("output.not-writable", "output {output} can't be written: {reason}")
LOCKED = Message(
    "output.locked",
    "output {output} is in use by another run{holder}: wait until it ends, or increase the time that this command waits "
    "(runtime.wait_minutes){lease}",
)
LEASE_LOST = Message(
    "output.lease-lost",
    "output {output}: this run stopped, because its lock was not renewed for {minutes:.0f} minutes, or another run took "
    "the lock. When no other run writes there, run the same command again; it resumes",
)
REWRITTEN = Message(
    "output.rewritten",
    "{where} is being rewritten: run the command again when the run that writes it has ended. If that run was interrupted, "
    "complete it with `ragassay finalize {output}`, or by repeating the run",
)

# the manifest, and what was scored under it
UNREADABLE_MANIFEST = Message("output.unreadable-manifest", "{path} can't be read: {reason}")
UNREADABLE_SHARD = Message(
    "output.unreadable-shard",
    "{path}, a part of the list of scored input files, can't be read ({reason}): restore it from a backup of the output folder",
)
OTHER_VERSION = Message(
    "output.other-version",
    "output {output} was written by another version of this program ({part} {version}, expected {expected}): score its "
    "logs again into another OUTPUT",
)
OTHER_SETTINGS = Message(
    "output.other-settings",
    "output {output} contains scores made under other settings:\n{lines}\nRestore the settings, or choose another OUTPUT for "
    "the new ones",
)
OTHER_COLUMN_TYPE = Message(
    "output.other-column-type",
    "a column has another type than in the logs that this output contains: {reason}. Cast it, rename it, or choose another "
    "OUTPUT",
)
NO_TEXT = Message(
    "output.no-text",
    "output {output} contains no text (output.drop_text), and {need} needs it: look the rows up in the logs by their "
    "row_id, or score these logs into another OUTPUT without output.drop_text",
)

# scored/
NO_VERDICTS = Message("output.no-verdicts", "output {output} has no verdicts yet: run `ragassay finalize {output}` first")
NO_COLUMN = Message("output.no-column", "output {output} has no column {column!r}{setting}. Available: {columns}")
UNREADABLE_ROWS = Message("output.unreadable-rows", "{path} can't be read: {reason}{hint}")

# explanations/ and escalated/
OTHER_SIDECAR_SETTINGS = Message(
    "output.other-second-pass",
    "output {output} contains {rows} made under other settings:\n{lines}\nRestore the settings. To make all of it again, "
    "{advice}",
)
UNBALANCED = Message(
    "output.unbalanced",
    "{path} has {outcomes} outcomes, {different} of them different, but {expected} were expected: run the same command again",
)

# calibration files
NO_CALIBRATION = Message(
    "calibration.missing",
    "calibration {path} does not exist: create one with `ragassay calibrate OUTPUT --label COLUMN --target flag-f1`",
)
UNREADABLE_CALIBRATION = Message("calibration.unreadable", "calibration {path} can't be read: {reason}")
OTHER_SCORES = Message("calibration.other-scores", "calibration {path} was fitted to other scores; calibrate again:\n{lines}")
NOT_A_CALIBRATION = Message("calibration.foreign-file", "{path} exists and is not a calibration: name another file")

# --partitions
NO_KEY = Message("partitions.no-key", "--partitions: the partitions of the output have no key {key!r}")
NO_PARTITION = Message("partitions.none", "output: {reason}")
FILTER_SYNTAX = Message(
    "partitions.syntax",
    "--partitions {filter!r} is invalid at {rest!r}: write comparisons of hive keys with = != < <= > >=, joined by `and`, "
    'such as "dt>=2026-11-01 and tenant=shop"',
)
FILTER_WITHOUT_AND = Message(
    "partitions.no-and",
    "--partitions {filter!r}: {rest!r} must begin with `and`; `or` is not supported",
)
NO_SUCH_KEY = Message("partitions.unknown-key", "input {input} is not partitioned by {keys} (--partitions): {partitioned_by}")
