"""The manifest of an output folder: which input files it holds, how their rows ended, and which runs made it.

It is the one record of state: a file that it calls scored is never scored again. The records are values: a step of a run
makes new ones from what it did (`jobs.run.account`), and changes none.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from ragassay.schemas.explained import Explained
from ragassay.schemas.input_file import LEFT, PENDING, SCORED, UNREADABLE, InputFile, Left
from ragassay.schemas.origins import Origins
from ragassay.schemas.sealed import Sealed
from ragassay.schemas.source import Source
from ragassay.schemas.versioned import RECORD, Record

__all__ = [
    "LEFT",
    "PENDING",
    "SCORED",
    "UNREADABLE",
    "DriftCheck",
    "Escalation",
    "Explained",
    "FitRecord",
    "InputFile",
    "JudgeRecord",
    "Left",
    "Manifest",
    "MemberFit",
    "Run",
    "Shift",
    "ThresholdRecord",
    "Verdicts",
]


@dataclass(frozen=True)
class MemberFit:
    """mu and sigma of a member.

    Attributes:
        mu: Mean that is taken from its values.
        sigma: Deviation that they are divided by, > 0.
        count: Values behind the two.
        low: The smallest of them.
        value: Which of its numbers is normalised (`pipeline.members.Value`).
        suspicious_below: Value of a response below which the member alone finds it suspicious; None where it has
            no such limit.
    """

    __pydantic_config__ = RECORD

    mu: float
    sigma: float
    count: int
    low: float
    value: str
    suspicious_below: float | None = None


@dataclass(frozen=True)
class FitRecord:
    """How values became scores.

    Attributes:
        source: Where mu and sigma come from, in words.
        members: mu and sigma a member; empty where no row had a score.
        mean: Aggregation of sentence scores.
        positive: Positivity policy.
        epsilon: Its epsilon.
        weights: Weight a member, sum 1; None where all count the same.
        calibrated: Whether a file of `calibrate` gave it.
        sentence: Threshold of a sentence as a fraction of the response's; None where the mean alone decides.
    """

    __pydantic_config__ = RECORD

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
    """tau.

    Attributes:
        value: tau; None where no row had a score.
        source: Where it comes from, in words.
        calibration: Id of the calibration that it is of; None without one.
    """

    __pydantic_config__ = RECORD

    value: float | None
    source: str
    calibration: str | None = None


@dataclass(frozen=True)
class Shift:
    """One thing that was compared.

    Attributes:
        what: psi, ks, label_mass, flagged, error_rate or sentences.
        member: The SLM, for the first three; else null.
        tonight: Its value tonight; null for psi and ks, which have none of their own.
        history: Its value over the history; null likewise.
        distance: How far apart the two are, in the threshold's unit.
        limit: The threshold.
        drifted: Whether the distance is above it.
    """

    __pydantic_config__ = RECORD

    what: str
    member: str | None
    tonight: float | None
    history: float | None
    distance: float
    limit: float
    drifted: bool


@dataclass(frozen=True)
class DriftCheck:
    """What was compared.

    Attributes:
        tonight: Hive paths of tonight's partitions.
        history: Those of the history.
        sentences: Sentences of the two.
        shifts: One a comparison; empty where there is nothing to compare.
        note: Why nothing, or not everything, could be compared; null otherwise.
    """

    __pydantic_config__ = RECORD

    tonight: list[str]
    history: list[str]
    sentences: tuple[int, int]
    shifts: list[Shift]
    note: str | None

    @property
    def drifted(self) -> list[Shift]:
        """The shifts above their threshold."""
        return [shift for shift in self.shifts if shift.drifted]


@dataclass(frozen=True)
class JudgeRecord:
    """Whose rows `escalated/` holds.

    Attributes:
        name: The judge's name, `decided_by` in `scored/`.
        value: Which of its numbers decides (`pipeline.members.Value`).
        below: It finds a sentence unsupported whose value lies below.
        identity: What its values depend on: weights, prompt, settings.
    """

    __pydantic_config__ = RECORD

    name: str
    value: str
    below: float
    identity: dict[str, Any]


@dataclass(frozen=True)
class Escalation:
    """What a run of the cascade did.

    Attributes:
        judge: Who was asked.
        when: What made responses doubtful: uncertainty, or a member.
        share: Share that was chosen; None under the dynamic threshold.
        identity: What the judge's values depend on.
        partitions: Partitions that it chose from.
        scored: Their scored responses.
        chosen: Those of them that it chose, or that had been asked about before; and errors of others that were tried again.
        decided: Of the chosen, those that the judge decided.
        changed: Of the decided, those whose verdict is not the ensemble's.
        failed: Of the chosen, those that it could not decide, by status: they keep the ensemble's verdict.
        asked: Rows that this run, and what broke off before it, put to the judge.
        usage: Prompts, tokens computed and reused, engine seconds and idle seconds of these.
        dollars: What they cost, by the job file's price; None without one.
        seconds: Wall time.
    """

    __pydantic_config__ = RECORD

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
    asked: int = 0
    usage: dict[str, int | float] = field(default_factory=dict)
    dollars: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """One invocation of the job.

    Attributes:
        run_id: Its id, also a column of `scored/`.
        started: UTC, ISO 8601.
        finished: UTC, ISO 8601; None while it runs or where it died.
        rows: in, scored, failed, skipped; in = scored + failed + skipped.
        skips: Of the skipped, those left out for a reason: sampled_out, left (for a later run), outside (of --partitions). An
            earlier run scored the others, or sampled them out.
        resumed: Of scored and failed, the rows that an earlier, broken run had already committed.
        statuses: Rows scored or failed by this run, by status.
        errors: Of the rows it wrote, those with the status `error`, and all (`errors`, `rows`): of rows that got their first
            verdicts, or of all in its partitions, whichever is worse. Where it wrote none, those of the last run that did.
        sentences: Sentences scored.
        flagged: Of the rows scored, responses with the verdict `hallucinated`; None where nothing was finalised.
        dtypes: SLM -> the type its engine computed in, which `dtype: auto` leaves to the machine.
        usage: Prompts, tokens computed and reused, engine seconds and idle seconds between calls, a member.
        seconds: Wall time a step.
        fit: How values became scores; None where nothing was finalised, as are
        threshold: tau,
        origins: which part of the verdicts comes from where (None also where no row had a score), and
        drift: what of tonight was compared with history, and what of it drifted.
        escalation: What the cascade did; None where nothing was escalated.
        partitions: The partitions it wrote.
        files_skipped: Unreadable files that were left out, with the reason.
        files_touched: Files that were written anew since they were scored, and whose size and footer are the same.
        source: The table that it read; None where it read files, or none.
        traces: What was counted where an export of traces was read (docs/how-to/inputs.md); empty where nothing of one was new.
        share: Share of the rows that it was to score; 1 is all of them.
        left: What its budget left; None where nothing is left.
    """

    __pydantic_config__ = RECORD

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
    source: Source | None = None
    traces: dict[str, int] = field(default_factory=dict)
    skips: dict[str, int] = field(default_factory=dict)
    share: float = 1.0
    left: Left | None = None


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of a partition.

    Attributes:
        run_id: The run that last wrote them.
        scored: Rows with a score.
        flagged: Those of them with the verdict `hallucinated`.
    """

    __pydantic_config__ = RECORD

    run_id: str
    scored: int
    flagged: int


def _by_number(files: Any) -> dict[int, Any]:
    """Files as the JSON lists them, by their numbers."""
    if not (isinstance(files, list) and all(isinstance(file, dict) and "number" in file for file in files)):
        raise ValueError("files are no list of objects with numbers")
    return {file.pop("number"): file for file in files}


@dataclass(frozen=True)
class Manifest(Record):
    """The state of an output folder.

    Attributes:
        fingerprint: What scores depend on, part by part (model, prompt, splitter, schema …).
        files: Input files by their numbers: every one ever registered that is not sealed.
        finalized: Partition -> its verdicts.
        runs: One record a run, oldest first.
        explained: One record a run of `explain`, oldest first.
        reasoners: Strategy -> what its explanations depend on: model, prompt, settings.
        judge: Whose rows `escalated/` holds; None where it was never written.
        escalated: Partition -> the run that escalated it.
        sealed: The other input files: many that are scored and judged leave the manifest.
        verdict_files: Partition -> id of the verdicts in `scored/` that may be read (`jobs.output.snapshot`).
    """

    WHAT = "a manifest"

    fingerprint: dict[str, Any] = field(default_factory=dict)
    files: Annotated[dict[int, InputFile], BeforeValidator(_by_number)] = field(default_factory=dict)
    finalized: dict[str, Verdicts] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    explained: list[Explained] = field(default_factory=list)
    reasoners: dict[str, dict[str, Any]] = field(default_factory=dict)
    judge: JudgeRecord | None = None
    escalated: dict[str, str] = field(default_factory=dict)
    sealed: Sealed = field(default_factory=Sealed)
    verdict_files: dict[str, str] = field(default_factory=dict)

    @property
    def registered(self) -> int:
        """How many input files were ever registered; the next one's number."""
        return self.sealed.files + len(self.files)

    def scored_rows(self) -> Counter[str]:
        """Rows of all scored input files, a partition."""
        rows = Counter(self.sealed.rows)
        for file in self.files.values():
            rows[file.partition] += file.rows_out
        return rows

    def shares_out(self) -> list[float]:
        """Of every input file ever registered, the share of its rows that `scored/` has; those that are sealed have all."""
        return [self.files[number].share_out if number in self.files else 1.0 for number in range(self.registered)]

    def with_unsealed(self, entries: Mapping[int, InputFile]) -> "Manifest":
        """The manifest with entries that were sealed: those in the shards count no more."""
        rows = Counter(self.sealed.rows)
        for file in entries.values():
            rows[file.partition] -= file.rows or 0
        sealed = replace(self.sealed, files=self.sealed.files - len(entries), rows=dict(rows))
        return replace(self, sealed=sealed, files={**self.files, **entries})

    @property
    def last_fit(self) -> FitRecord | None:
        """How the last verdicts came about; None where no row has a score."""
        return next((run.fit for run in reversed(self.runs) if run.fit and run.fit.members), None)

    def _to_data(self) -> dict[str, Any]:
        data = super()._to_data()
        return data | {"files": [{"number": number, **file} for number, file in sorted(data["files"].items())]}
