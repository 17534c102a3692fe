"""The manifest of an output folder: its input files, the outcomes of their rows, and the runs that wrote it.

It is the only record of state: a file with the state `scored` is never scored again. The records are immutable values: each
step of a run creates new records from its result (`jobs.run.account`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from ragassay.schemas.explain_run import ExplainRun
from ragassay.schemas.input_file import DEFERRED, PENDING, SCORED, UNREADABLE, DeferredInput, InputFile
from ragassay.schemas.sealed_files import SealedSummary
from ragassay.schemas.source import SourceTable
from ragassay.schemas.verdict_origins import Origins
from ragassay.schemas.versioned import RECORD_CONFIG, Record

__all__ = [
    "DEFERRED",
    "PENDING",
    "SCORED",
    "UNREADABLE",
    "DeferredInput",
    "DriftCheck",
    "Escalation",
    "ExplainRun",
    "FitRecord",
    "InputFile",
    "JudgeRecord",
    "Manifest",
    "MemberFit",
    "PartitionVerdicts",
    "Run",
    "Shift",
    "ThresholdRecord",
]


@dataclass(frozen=True)
class MemberFit:
    """Fitted moments of a member.

    Attributes:
        mu: Mean that is subtracted from its values.
        sigma: Standard deviation that divides them, > 0.
        count: Number of values behind `mu` and `sigma`.
        low: Smallest of these values.
        value: Kind of its value that is normalized (`pipeline.member_values.ValueKind`).
        suspicious_below: Response value below which the member alone finds a response suspicious; None without this limit.
    """

    __pydantic_config__ = RECORD_CONFIG

    mu: float
    sigma: float
    count: int
    low: float
    value: str
    suspicious_below: float | None = None


@dataclass(frozen=True)
class FitRecord:
    """How member values became scores.

    Attributes:
        source: Origin of mu and sigma, in words.
        members: Member -> mu and sigma; empty if no row has a score.
        mean: Aggregation of sentence scores.
        positive: Positivity policy.
        epsilon: Epsilon of the positivity policy.
        weights: Member -> weight, sum 1; None if all members count the same.
        calibrated: Whether a calibration provided the fit.
        sentence: Sentence threshold as a fraction of the response threshold; None if the mean alone decides.
    """

    __pydantic_config__ = RECORD_CONFIG

    source: str
    members: dict[str, MemberFit]
    mean: str
    positive: str
    epsilon: float
    weights: dict[str, float] | None
    calibrated: bool = False
    sentence: float | None = None


@dataclass(frozen=True)
class ThresholdRecord:
    """The response threshold tau.

    Attributes:
        value: tau; None if no row has a score.
        source: Origin of tau, in words.
        calibration: Id of the calibration that provided tau; None without one.
        probability: P(supported), 0 to 1, of a response with the score tau; None if responses have no probability.
        flagged_probability: P(supported), 0 to 1, at or below which a sentence is flagged; None if sentences have no
            probability.
        doubtful_probability: P(supported), 0 to 1, at or below which a sentence is doubtful; None if sentences have no
            probability.
    """

    __pydantic_config__ = RECORD_CONFIG

    value: float | None
    source: str
    calibration: str | None = None
    probability: float | None = None
    flagged_probability: float | None = None
    doubtful_probability: float | None = None


@dataclass(frozen=True)
class Shift:
    """Comparison of one metric between the latest partitions and the history.

    Attributes:
        metric: psi, ks, label_mass, flagged, error_rate or sentences.
        member: The SLM for psi, ks and label_mass; otherwise null.
        latest: Value in the latest partitions; null for psi and ks, which only compare.
        history: Value in the history; null for psi and ks.
        distance: Distance between the two, in the unit of `limit`.
        limit: Drift threshold.
        drifted: Whether the distance exceeds the limit, and for flagged and error_rate also what chance explains.
    """

    __pydantic_config__ = RECORD_CONFIG

    metric: str
    member: str | None
    latest: float | None
    history: float | None
    distance: float
    limit: float
    drifted: bool


@dataclass(frozen=True)
class DriftCheck:
    """Comparison of the latest partitions with the history.

    Attributes:
        latest: Hive paths of the latest partitions.
        history: Hive paths of the history's partitions.
        sentences: Number of sentences in the latest partitions and in the history.
        shifts: Comparisons; empty if there is nothing to compare.
        note: Why some or all comparisons are missing; null otherwise.
        limits: Settings of the check: the job file's `verdict.drift`, and `history`, its `verdict.history.partitions`.
    """

    __pydantic_config__ = RECORD_CONFIG

    latest: list[str]
    history: list[str]
    sentences: tuple[int, int]
    shifts: list[Shift]
    note: str | None
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def drifted(self) -> list[Shift]:
        """Comparisons that exceed their limit."""
        return [shift for shift in self.shifts if shift.drifted]


@dataclass(frozen=True)
class JudgeRecord:
    """The judge whose rows `escalated/` contains.

    Attributes:
        name: The judge's name, `decided_by` in `scored/`.
        value: Kind of its value that decides (`pipeline.member_values.ValueKind`).
        flags_below: Value below which it finds a sentence unsupported.
        identity: Everything that its values depend on: weights, prompt, settings.
    """

    __pydantic_config__ = RECORD_CONFIG

    name: str
    value: str
    flags_below: float
    identity: dict[str, Any]


@dataclass(frozen=True)
class Escalation:
    """Result of a cascade run.

    Attributes:
        judge: Name of the judge.
        when: Criterion of a doubtful response: uncertainty, or a member.
        share: Share of responses to escalate; None with the dynamic threshold.
        identity: Everything that the judge's values depend on.
        partitions: Partitions whose responses were candidates.
        scored: Scored responses in these partitions.
        chosen: Responses selected in this run or an earlier run, including retried errors of other responses.
        decided: Selected responses that the judge decided.
        changed: Decided responses whose verdict differs from the ensemble's.
        failed: Status -> selected responses that the judge could not decide; they keep the ensemble's verdict.
        sent: Rows that this run, and the interrupted run that it resumed, sent to the judge.
        usage: Prompts, tokens computed and reused, engine seconds and idle seconds of these rows.
        dollars: Cost at the job file's price; None without a price.
        seconds: Wall time.
    """

    __pydantic_config__ = RECORD_CONFIG

    judge: str
    when: str
    share: float | None
    identity: dict[str, Any]
    partitions: list[str] = field(default_factory=list)
    scored: int = 0
    chosen: int = 0
    decided: int = 0
    changed: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    usage: dict[str, int | float] = field(default_factory=dict)
    dollars: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """One run of the job.

    Attributes:
        run_id: Identifier, also a column of `scored/`.
        started: UTC, ISO 8601.
        finished: UTC, ISO 8601; None while it runs, or if it was interrupted.
        rows: in, scored, failed, skipped; in = scored + failed + skipped.
        resumed: Scored and failed rows that an interrupted run had already committed.
        statuses: Status -> rows that this run scored or failed.
        errors: `errors`, the rows with the status `error`, and `rows`, all rows. Both count the rows that got their first
            verdicts, or all rows in the run's partitions: the set with the larger share of errors. If the run wrote no rows,
            they are those of the last run that did.
        sentences: Scored sentences.
        flagged: Scored responses with the verdict `hallucinated`; None if nothing was finalized.
        dtypes: SLM -> dtype that its engine computed in; `dtype: auto` depends on the machine.
        usage: Member -> prompts, tokens computed and reused, engine seconds and idle seconds between calls.
        seconds: Step -> wall time.
        fit: How values became scores; None if nothing was finalized.
        threshold: tau; None if nothing was finalized.
        origins: Origins of the verdicts' parts; None if nothing was finalized, or if no row has a score.
        drift: Comparison of the latest partitions with the history; None if nothing was finalized.
        escalation: Result of the cascade; None if nothing was escalated.
        partitions: Partitions that it wrote.
        files_skipped: Unreadable file -> reason.
        files_touched: Files rewritten since they were scored, with the same size and footer.
        source: Table that it read; None for files.
        traces: Counts of a trace export that it read (docs/how-to/inputs.md); empty if it read nothing new.
        skips: Reason -> skipped rows: sampled_out, deferred (to a later run), outside (of --partitions). Other skipped rows
            were scored or sampled out by an earlier run.
        share: Share of the rows to score; 1 is all rows.
        deferred: Input that its budget deferred; None if nothing is deferred.
    """

    __pydantic_config__ = RECORD_CONFIG

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
    usage: dict[str, dict[str, int | float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    fit: FitRecord | None = None
    threshold: ThresholdRecord | None = None
    origins: Origins | None = None
    drift: DriftCheck | None = None
    escalation: Escalation | None = None
    partitions: list[str] = field(default_factory=list)
    files_skipped: dict[str, str] = field(default_factory=dict)
    files_touched: list[str] = field(default_factory=list)
    source: SourceTable | None = None
    traces: dict[str, int] = field(default_factory=dict)
    skips: dict[str, int] = field(default_factory=dict)
    share: float = 1.0
    deferred: DeferredInput | None = None


@dataclass(frozen=True)
class PartitionVerdicts:
    """Verdicts of a partition.

    Attributes:
        run_id: Run that last wrote them.
        scored: Rows with a score.
        flagged: Scored rows with the verdict `hallucinated`.
    """

    __pydantic_config__ = RECORD_CONFIG

    run_id: str
    scored: int
    flagged: int


def _index_by_number(files: Any) -> dict[int, Any]:
    """Convert the JSON's list of files to a mapping from file number to file."""
    if not (isinstance(files, list) and all(isinstance(file, dict) and "number" in file for file in files)):
        raise ValueError("files must be a list of objects with a number")
    return {file.pop("number"): file for file in files}


@dataclass(frozen=True)
class Manifest(Record):
    """State of an output folder.

    Attributes:
        fingerprint: Everything that scores depend on, by part (model, prompt, splitter, schema …).
        files: File number -> registered input file that is not sealed.
        finalized: Partition -> its verdicts.
        runs: Runs, oldest first.
        explained: Runs of `explain`, oldest first.
        reasoners: Strategy -> everything that its explanations depend on: model, prompt, settings.
        judge: Judge whose rows `escalated/` contains; None before the first escalation.
        escalated: Partition -> run that escalated it.
        sealed: Summary of the sealed input files, which are scored and finalized and are no longer listed here.
        verdict_files: Partition -> id of its readable verdicts in `scored/` (`jobs.output.snapshot`).
    """

    DESCRIPTION = "a manifest"

    fingerprint: dict[str, Any] = field(default_factory=dict)
    files: Annotated[dict[int, InputFile], BeforeValidator(_index_by_number)] = field(default_factory=dict)
    finalized: dict[str, PartitionVerdicts] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    explained: list[ExplainRun] = field(default_factory=list)
    reasoners: dict[str, dict[str, Any]] = field(default_factory=dict)
    judge: JudgeRecord | None = None
    escalated: dict[str, str] = field(default_factory=dict)
    sealed: SealedSummary = field(default_factory=SealedSummary)
    verdict_files: dict[str, str] = field(default_factory=dict)

    @property
    def registered_files(self) -> int:
        """Number of input files ever registered; also the number of the next file."""
        return self.sealed.files + len(self.files)

    def count_scored_rows(self) -> Counter[str]:
        """Count the rows of all scored input files per partition."""
        rows = Counter(self.sealed.rows)
        for file in self.files.values():
            rows[file.partition] += file.scored_rows
        return rows

    def scored_shares(self) -> list[float]:
        """Return the share of rows in `scored/` of every input file ever registered; 1 for sealed files."""
        return [self.files[number].scored_share if number in self.files else 1.0 for number in range(self.registered_files)]

    def with_unsealed(self, entries: Mapping[int, InputFile]) -> "Manifest":
        """Return the manifest with sealed entries restored; the summary no longer counts them."""
        rows = Counter(self.sealed.rows)
        for file in entries.values():
            rows[file.partition] -= file.rows or 0
        sealed = replace(self.sealed, files=self.sealed.files - len(entries), rows=dict(rows))
        return replace(self, sealed=sealed, files={**self.files, **entries})

    @property
    def last_fit(self) -> FitRecord | None:
        """Fit of the latest verdicts; None if no row has a score."""
        return next((run.fit for run in reversed(self.runs) if run.fit and run.fit.members), None)

    def _to_data(self) -> dict[str, Any]:
        data = super()._to_data()
        return data | {"files": [{"number": number, **file} for number, file in sorted(data["files"].items())]}
