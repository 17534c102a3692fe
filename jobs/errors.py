"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NO_MAPPING = Message("config.no-mapping", "{kind} {path} must be a mapping such as 'key: value', not a {type}")
UNREADABLE = Message("config.unreadable", "{kind} {path}: {reason}")
NO_YAML = Message("config.no-yaml", "{kind} {path} is not valid YAML: {reason}")
NO_ANSWER = Message(
    "store.no-answer",
    "{address}: the object store {host} does not answer: {reason}. Start it, correct the address, or look at this machine's "
    "network, then give the same command again",
)
TOO_FEW_RESOURCES = Message(
    "ray.too-few-resources",
    "the job needs {needed:g} {kind}s at once and Ray has {available:g}: lower replicas.min or "
    "replicas.num_{kind_in_config}s of an SLM, or add nodes",
)
NO_CLUSTER = Message(
    "ray.no-cluster",
    "runtime.ray_address: no Ray cluster at {address!r}, or one that wants a token (then set RAY_AUTH_MODE=token): {reason}",
)
NOT_STARTED = Message(
    "ray.not-started",
    "Ray did not start on this machine: {reason}. It wants memory, room in /dev/shm and in /tmp, processes (ulimit -u), and "
    "a machine that is not too busy",
)
AMBIGUOUS = Message(
    "path.ambiguous",
    "{uri} has an @ in its path, and a user or a password before it: write every @ of these, and of the path, as %40",
)
NO_FILE = Message("path.no-file", "{uri!r} names no file")
FILE_INSIDE = Message(
    "output.file-inside",
    "{path} lies among the output folder's own data, which it would spoil: name a file elsewhere",
)
NOT_OPENABLE = Message("path.not-openable", "{uri!r} is no path or URI that can be opened: {reason}")
IS_FOLDER = Message("path.is-folder", "{path} is a folder: name a file in it")
NOT_WRITABLE = Message("path.not-writable", "{path} can't be written: {reason}; name another file")
EXISTS = Message("path.exists", "{path} exists already, and nothing is overwritten: name another file, or move it away")
NO_PARQUET = Message("path.no-parquet", "{path} can't be read as Parquet{hint}: {reason}")
LACKS_COLUMNS = Message("path.lacks-columns", "{path} lacks the column(s) {columns}{hint}; it has {known}")
NO_BUCKET = Message("path.no-bucket", "{path} can't be written: there is no bucket {bucket!r}")
INVALID = Message("config.invalid", "{file}: {count} fault(s)\n{lines}")
FULL = Message(
    "disk.full",
    "no room left to write: {reason}{place}. Free some space, then run the same command again: it resumes",
)
GAVE_WAY = Message("store.gave-way", "the object store failed{where}: {reason}. Run the same command again: it resumes")
