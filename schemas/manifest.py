"""The manifest of an output folder: which input files it holds, how their rows ended, and which runs made it.

It is the one record of state: a file that it calls scored is never scored again.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

MANIFEST_VERSION = 2

PENDING = "pending"
SCORED = "scored"
UNREADABLE = "unreadable"


@dataclass
class InputFile:
    """An input file; its number (place in the manifest's list) is the upper half of its rows' `row_key`.

    Attributes:
        path: Path below the input's root, such as `dt=2026-11-20/part-0.parquet`.
        uri: Where it was read from.
        size: Bytes when it was registered.
        rows: Rows by its Parquet footer; None where the footer can't be read.
        partition: Hive path of its folder; empty where there is none.
        state: pending, scored or unreadable.
        error: Why it is unreadable.
        digest: Of its Parquet footer; None where it can't be read, and in manifests that had none.
        judged: Whether a run has written verdicts of its rows and ended.
        mtime: When it was last written, nanoseconds since 1970; None where its store does not tell, and in manifests without.
    """

    path: str
    uri: str
    size: int
    rows: int | None
    partition: str
    state: str = PENDING
    error: str | None = None
    digest: str | None = None
    judged: bool = False
    mtime: int | None = None


@dataclass
class Run:
    """One invocation of the job.

    Attributes:
        run_id: Its id, also a column of `scored/`.
        started: UTC, ISO 8601.
        finished: UTC, ISO 8601; None while it runs or where it died.
        rows: in, scored, failed, skipped (scored by an earlier run); in = scored + failed + skipped.
        resumed: Of scored and failed, the rows that an earlier, broken run had already committed.
        statuses: Rows scored or failed by this run, by status.
        errors: Of the rows it wrote, those with the status `error`, and all (`errors`, `rows`): of rows that got their first
            verdicts, or of all in its partitions, whichever is worse. Where it wrote none, those of the last run that did.
        sentences: Sentences scored.
        flagged: Of the rows scored, responses with the verdict `hallucinated`; None where nothing was finalised.
        dtypes: SLM -> the type its engine computed in, which `dtype: auto` leaves to the machine.
        usage: Prompts, tokens computed and reused, engine seconds and idle seconds between calls, a member.
        seconds: Wall time a step.
        fit: mu, sigma and count a member, and where they come from; mean, policy, epsilon and weights.
        threshold: Value, and where it comes from.
        drift: What of tonight was compared with history, and what of it drifted (`jobs.verdict.drift.DriftCheck`).
        partitions: The partitions it wrote.
        files_skipped: Unreadable files that were left out, with the reason.
        files_touched: Files that were written anew since they were scored, and whose size and footer are the same.
    """

    run_id: str
    started: str
    finished: str | None = None
    rows: dict[str, int] = field(default_factory=dict)
    resumed: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    sentences: int = 0
    flagged: int | None = None
    dtypes: dict[str, str] = field(default_factory=dict)
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    threshold: dict[str, Any] = field(default_factory=dict)
    drift: dict[str, Any] = field(default_factory=dict)
    partitions: list[str] = field(default_factory=list)
    files_skipped: dict[str, str] = field(default_factory=dict)
    files_touched: list[str] = field(default_factory=list)


@dataclass
class Verdicts:
    """The verdicts of a partition.

    Attributes:
        run_id: The run that last wrote them.
        scored: Rows with a score.
        flagged: Those of them with the verdict `hallucinated`.
    """

    run_id: str
    scored: int
    flagged: int


@dataclass
class Manifest:
    """The state of an output folder.

    Attributes:
        fingerprint: What scores depend on, part by part (model, prompt, splitter, schema …).
        files: Every input file ever registered, in the order of their numbers.
        finalized: Partition -> its verdicts.
        runs: One record a run, oldest first.
    """

    fingerprint: dict[str, Any] = field(default_factory=dict)
    files: list[InputFile] = field(default_factory=list)
    finalized: dict[str, Verdicts] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    def to_json(self) -> str:
        """JSON text of the whole manifest."""
        return json.dumps({"version": MANIFEST_VERSION, **asdict(self)}, indent=1)

    @staticmethod
    def from_json(text: str) -> "Manifest":
        """Read what `to_json` wrote.

        Raises:
            ValueError: The text is of another version.
        """
        data = json.loads(text)
        version = data.pop("version", None)
        if version != MANIFEST_VERSION:
            raise ValueError(f"the manifest is of version {version}, this program reads version {MANIFEST_VERSION}")
        return Manifest(
            fingerprint=data["fingerprint"],
            files=[InputFile(**f) for f in data["files"]],
            finalized={place: Verdicts(**v) for place, v in data["finalized"].items()},
            runs=[Run(**r) for r in data["runs"]],
        )
