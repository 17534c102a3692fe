"""Make the report (`ragassay report`): one page, or with --all-runs a site of an index and a page per partition."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.verdict import VerdictConfig
from ragassay.jobs.evaluation.compare_members import compare_members
from ragassay.jobs.evaluation.estimate import ESTIMATE_FILE, compute_estimate
from ragassay.jobs.evaluation.evaluate import evaluate
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.manifest import has_text
from ragassay.jobs.output.partitions import hive_keys
from ragassay.jobs.output.scored_dataset import format_conditions
from ragassay.jobs.report import errors
from ragassay.jobs.report.first_screen.events import Event
from ragassay.jobs.report.gather import Selection, gather_partition_data, gather_report_data
from ragassay.jobs.report.page import Link, Report, render_report
from ragassay.jobs.report.responses.member_scores import read_member_scales
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.drift import check_drift, check_output_drift
from ragassay.jobs.verdicts.partition_stats import read_member_values, read_partition_stats
from ragassay.pipeline.errors import InputError
from ragassay.schemas.estimate import Estimate
from ragassay.schemas.evaluation import Evaluation
from ragassay.schemas.manifest import DriftCheck, Manifest
from ragassay.schemas.stats import PartitionStats
from ragassay.schemas.versioned import InvalidRecordError, RecordVersionError

INDEX = "index.html"
ShowTask = Callable[..., AbstractContextManager[None]]
"""Shows a block as a task: phase, then `total` and `unit`."""


@dataclass(frozen=True)
class ReportOptions:
    """What the user asked for.

    Attributes:
        slices: Columns with a table of their values.
        where: Column -> value, as text, that a row must have.
        source: The labels; None without labels.
        events: Events of the trend.
        limits: Member -> limit, instead of the manifest's.
        drift: Settings of the drift check.
    """

    slices: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    source: LabelSource | None = None
    events: Sequence[Event] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    drift: VerdictConfig = field(default_factory=VerdictConfig)

    @property
    def source_in_logs(self) -> LabelSource | None:
        """The labels if they are in a column of the logs."""
        return self.source if self.source and not self.source.file else None


class ReportMaker:
    """Makes the pages about a snapshot of an output.

    Attributes:
        report: What the pages are made from.
    """

    def __init__(
        self, output: str, snapshot: Folder, manifest: Manifest, job: Job, options: ReportOptions, show_task: ShowTask
    ) -> None:
        """Read what all pages share.

        Args:
            output: Path or URI of the output folder, as its user wrote it.
            snapshot: The output folder.
            manifest: Its manifest.
            job: The job, for labels and drift.
            options: What the user asked for.
            show_task: Shows the progress.

        Raises:
            InputError: No row meets the conditions, or a column is missing.
        """
        self._snapshot, self._manifest, self._job, self._options = snapshot, manifest, job, options
        values = read_member_values(manifest) if manifest.last_fit else {}
        self._values = values
        in_logs = options.source_in_logs
        self._selection = Selection(
            slices=options.slices,
            label=in_logs.column if in_logs else None,
            where=options.where,
            scales=read_member_scales(manifest, options.limits),
            has_texts=has_text(manifest),
        )
        with show_task("reading", total=manifest.count_scored_rows().total(), unit="rows"):
            data = gather_report_data(snapshot, self._selection)
        if options.where and not data.counts.rows:
            raise InputError(errors.REPORT_NO_ROW, output=snapshot.address, where=format_conditions(options.where))
        with show_task("evaluating", unit="steps"):
            evaluation = self._evaluate()
        self.report = Report(
            output=output,
            manifest=manifest,
            data=data,
            slices=options.slices,
            where=options.where,
            events=options.events,
            estimate=self._read_estimate(),
            evaluation=evaluation,
            comparison=compare_members(
                snapshot, manifest, source=options.source, overrides=options.limits, where=options.where
            ) if len(values) > 1 else None,
        )  # fmt: skip

    def make_page(self) -> str:
        """Make the page of the whole output: the latest partition first, all of them by a switch."""
        data = self.report.data
        if len(data.dated_groups) < 2:
            return render_report(self.report, [data], self._check_drift())
        latest = gather_partition_data(self._snapshot, self._selection, data.dated_groups[-1].value)
        return render_report(self.report, [latest, data], self._check_drift())

    def make_site(self) -> Iterator[tuple[str, str]]:
        """Make a site: yield the name and text of a page for each value of the first hive key, the index last."""
        values = [group.value for group in self.report.data.dated_groups]
        links = [Link(f"{name}.html", value) for name, value in zip(_name_pages(values), values, strict=True)]
        index = Link(INDEX, "all")
        for number, link in enumerate(links):
            around = [*links[max(number - 1, 0) : number], index, *links[number + 1 : number + 2]]
            data = gather_partition_data(self._snapshot, self._selection, link.text)
            yield link.href, render_report(self.report, [data], self._check_drift(link.text), around=around)
        pages = {link.text: link.href for link in reversed(links)}
        yield INDEX, render_report(self.report, [self.report.data], self._check_drift(), pages=pages)

    def _check_drift(self, value: str | None = None) -> DriftCheck:
        """Check the drift of the latest partitions, or of those with a value of the first hive key."""
        if self._options.where:
            return DriftCheck([], [], (0, 0), [], "it is measured over all rows, and --where selects some")
        if value is None or not self._values:
            return check_output_drift(self._options.drift, self._manifest, self._snapshot)
        latest = [path for path in self._stats if _first_value(path) == value]
        return check_drift(self._options.drift, self._manifest, self._stats, latest)

    @cached_property
    def _stats(self) -> dict[str, PartitionStats]:
        """Statistics of every partition with verdicts."""
        return read_partition_stats(self._snapshot, self._values, frozenset(self._manifest.finalized))

    def _evaluate(self) -> Evaluation | None:
        if self._options.source is None:
            return None
        settings = self._job.evaluation
        return evaluate(
            self._snapshot,
            self._manifest,
            self._options.source,
            group_column=settings.group,
            slices=self._options.slices,
            resamples=settings.resamples,
            judge=settings.reference,
            cascade=None,
        )

    def _read_estimate(self) -> Estimate | None:
        """Estimate the share hallucinated from the labels; without labels, read the last estimate of the same rows."""
        if self._options.source is not None:
            try:
                return compute_estimate(self._snapshot, self._options.source)
            except InputError:  # labels that `evaluate` reads need not be a sample of responses
                return None
        text = self._snapshot.read(ESTIMATE_FILE)
        try:
            last = Estimate.from_json(text) if text else None
        except (InvalidRecordError, RecordVersionError):
            return None
        return last if last and last.where == dict(self._options.where) else None


def _first_value(path: str) -> str:
    return next(iter(hive_keys(path).values()), "")


def _name_pages(values: Sequence[str]) -> Iterator[str]:
    """Name the page of each value, with letters that every bucket and disk takes."""
    names: set[str] = {INDEX.partition(".")[0]}
    for value in values:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", value).strip(".-")[:80] or "partition"
        name, number = plain, 2
        while name.lower() in names:
            name, number = f"{plain}-{number}", number + 1
        names.add(name.lower())
        yield name
