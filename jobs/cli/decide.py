"""The commands that turn scores into decisions: evaluate, calibrate, drift, report, export."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer
from pyarrow.fs import FileType

from ragassay.jobs.cli.console import DRIFT_EXIT, our_errors
from ragassay.jobs.config import Job, load_job
from ragassay.jobs.decide.export.run import Format
from ragassay.jobs.decide.labels import LabelSource
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output, read_manifest
from ragassay.jobs.storage import Folder, file_of, open_file, refuse_inside
from ragassay.pipeline.errors import ConfigError, OutputError
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED
from ragassay.schemas.manifest import Manifest

app = typer.Typer()

PAGE_START = b"<!doctype html"
"""How a report begins, which may be overwritten by the next."""


class Verdict(StrEnum):
    """The two classes."""

    SUPPORTED = SUPPORTED
    HALLUCINATED = HALLUCINATED


Output = Annotated[str, typer.Argument(help="Output folder or URI: raw/, stats/, scored/ and manifest.json.")]
Config = Annotated[str | None, typer.Option("--config", help="Job file (YAML); every setting has a default.")]
FailOnDrift = Annotated[
    bool, typer.Option("--fail-on-drift", help=f"End with exit code {DRIFT_EXIT} where tonight has drifted from its history.")
]
Label = Annotated[
    str | None,
    typer.Option("--label", help="Column of the labels: booleans, or correct, partial, wrong; null is no label."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels", help="Parquet file with row_id and the label column, such as flagged rows that reviewers filled in."
    ),
]
TrueMeans = Annotated[
    Verdict | None, typer.Option("--true-means", help="What true in the label column says of a response, if its name does not.")
]
IgnoreLabel = Annotated[list[str] | None, typer.Option("--ignore-label", help="A label that counts as none; can be repeated.")]
SentenceLabels = Annotated[
    str | None,
    typer.Option(
        "--sentence-labels",
        help="Column of labelled sentences (start, end, supported) or unsupported spans (start, end); taken from "
        "sentence_labels or spans where there is one.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help="Look only at rows such as split=train; can be repeated."),
]
Group = Annotated[
    str | None,
    typer.Option("--group", help="Column of the item that a row belongs to (item if it is there, else the context)."),
]
Slices = Annotated[list[str] | None, typer.Option("--slice", help="Look at each value of this column; can be repeated.")]
Resamples = Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples behind each interval; 0 for none.")]


@app.command()
def evaluate(
    output: Output,
    label: Label = None,
    labels: Labels = None,
    true_means: TrueMeans = None,
    ignore_label: IgnoreLabel = None,
    sentence_labels: SentenceLabels = None,
    where: Where = None,
    group: Group = None,
    slices: Slices = None,
    resamples: Resamples = 1000,
    config: Config = None,
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade", help="Also draw quality against cost from a judge that is never asked to one that always is."
        ),
    ] = False,
    explanations: Annotated[
        bool,
        typer.Option("--explanations", help="Measure the explanations instead; each value of a --slice is a data set."),
    ] = False,
    judgements: Annotated[
        str | None, typer.Option("--judgements", metavar="FILE", help="With --explanations: what people say of the reasons.")
    ] = None,
) -> None:
    """Compare scores and verdicts with labels: the paper's table, baselines beside it; writes OUTPUT/evaluation.json."""
    with our_errors() as console, opened(output) as (folder, manifest):
        if explanations:
            from ragassay.jobs.explain.measure import measure_explanations
            from ragassay.jobs.explain.summary import print_measured

            if len(slices or []) > 1 or (where and not label):
                raise ConfigError("explanations are measured by one --slice, and --where goes with --label")
            truth = label_source(label, labels, true_means, ignore_label, sentence_labels, where)
            column = slices[0] if slices else None
            print_measured(measure_explanations(folder, truth, column, judgements), console)
            return
        if judgements:
            raise ConfigError("--judgements are of explanations: name --explanations too")
        from ragassay.jobs.decide.evaluate import evaluate as run_evaluate
        from ragassay.jobs.decide.tables import print_evaluation

        source = _needed(label_source(label, labels, true_means, ignore_label, sentence_labels, where))
        judge = load_job(config).judge
        found = run_evaluate(
            folder, manifest, source, group=group, slices=slices or [], resamples=resamples, judge=judge, cascade=cascade
        )
        print_evaluation(found, console)


@app.command()
def calibrate(
    output: Output,
    target: Annotated[str, typer.Option("--target", help="precision>=0.95, recall>=0.9, f1, flagged=0.1 or mean.")],
    label: Label = None,
    labels: Labels = None,
    true_means: TrueMeans = None,
    ignore_label: IgnoreLabel = None,
    where: Where = None,
    group: Group = None,
    of: Annotated[Verdict, typer.Option("--of", help="Class that precision, recall and F1 are of.")] = Verdict.SUPPORTED,
    certify: Annotated[
        float | None,
        typer.Option("--certify", metavar="DELTA", help="Certify the precision; it may fail to hold with this probability."),
    ] = None,
    threshold_only: Annotated[
        bool, typer.Option("--threshold-only", help="Keep mean, policy and weights as the last verdicts had them.")
    ] = False,
    to: Annotated[str | None, typer.Option("--to", help="File to write; OUTPUT/calibration.json if none is named.")] = None,
) -> None:
    """Fit threshold, mean, policy, weights and probabilities to labels; `finalize --calibration` uses the file."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.calibrate import calibrate as run_calibrate
        from ragassay.jobs.decide.tables import print_calibration
        from ragassay.jobs.output.calibration_file import write_calibration
        from ragassay.pipeline.calibration.target import parse_target

        wanted = parse_target(target, of.value)
        source = label_source(label, labels, true_means, ignore_label, None, where)
        found = run_calibrate(folder, manifest, wanted, source, group=group, delta=certify, threshold_only=threshold_only)
        print_calibration(found, write_calibration(found, folder, to), output, console)


@app.command()
def drift(output: Output, config: Config = None, fail_on_drift: FailOnDrift = False) -> None:
    """Compare the last partition with the history before it."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.labelled import member_values_of, stats_of
        from ragassay.jobs.decide.tables import print_drift
        from ragassay.jobs.verdict.drift import check_drift

        check = check_drift(load_job(config), manifest, stats_of(folder, member_values_of(manifest)))
        print_drift(check, console)
        if fail_on_drift and check.drifted:
            sys.exit(DRIFT_EXIT)


@app.command()
def compare(
    output: Output,
    last: Annotated[int, typer.Option("--last", min=1, help="How many responses.")] = 50,
    order_by: Annotated[
        str | None, typer.Option("--order-by", help="Column whose highest values are the last; else the last rows logged.")
    ] = None,
    label: Label = None,
    true_means: TrueMeans = None,
    ignore_label: IgnoreLabel = None,
    config: Config = None,
) -> None:
    """Show what each SLM and detector alone would flag among the last responses, and where they agree."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.compare import compare as run_compare
        from ragassay.jobs.decide.tables import print_compared

        source = label_source(label, None, true_means, ignore_label, None, None)
        below = _below(load_job(config)) if config else {}
        found = run_compare(folder, manifest, last=last, order_by=order_by, source=source, below=below)
        print_compared(found, console)


@app.command()
def report(
    output: Output,
    label: Label = None,
    labels: Labels = None,
    true_means: TrueMeans = None,
    ignore_label: IgnoreLabel = None,
    sentence_labels: SentenceLabels = None,
    where: Where = None,
    group: Group = None,
    slices: Slices = None,
    resamples: Resamples = 1000,
    config: Config = None,
    all_explanations: Annotated[
        bool, typer.Option("--all-explanations", help="Show also explanations by which the model disagrees with the flag.")
    ] = False,
    to: Annotated[str | None, typer.Option("--to", help="File to write; OUTPUT/report.html if none is named.")] = None,
) -> None:
    """Write one self-contained HTML page about OUTPUT; with --label also all that `evaluate` does."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.compare import compare as run_compare
        from ragassay.jobs.decide.evaluate import evaluate as run_evaluate
        from ragassay.jobs.decide.labelled import member_values_of, stats_of
        from ragassay.jobs.decide.report.gather import gather
        from ragassay.jobs.decide.report.page import render
        from ragassay.jobs.decide.tables import print_evaluation
        from ragassay.jobs.verdict.drift import check_drift

        job = load_job(config)
        place, name = _page(folder, to)
        source = label_source(label, labels, true_means, ignore_label, sentence_labels, where)
        values = member_values_of(manifest) if manifest.last_fit else {}
        drift_check = check_drift(job, manifest, stats_of(folder, values) if values else {})
        found = gather(folder, slices or [], source.column if source and not source.file else None, all_explanations)
        run = next(run for run in reversed(manifest.runs) if run.threshold)  # there is one, or gather had refused
        evaluation = None
        if source is not None:
            evaluation = run_evaluate(
                folder, manifest, source, group=group, slices=slices or [], resamples=resamples, judge=job.judge, cascade=None
            )
            print_evaluation(evaluation, console)
        in_logs = source if source and not source.file else None
        below = _below(job) if config else {}
        compared = run_compare(folder, manifest, source=in_logs, below=below) if len(values) > 1 else None
        place.write(name, render(output, run, found, drift_check, evaluation, compared))
        console.print(f"report  {place.uri_of(name)}", markup=False)


@app.command()
def export(
    output: Output,
    dest: Annotated[str, typer.Argument(help="File to write, a path or URI.")],
    fmt: Annotated[
        Format,
        typer.Option(
            "--format",
            help="messages (JSON lines) or parquet: responses that passed. dpo: pairs to one question, of which one passed. "
            "flagged: a row a flagged sentence, for reviewers.",
        ),
    ],
    system: Annotated[str | None, typer.Option("--system", help="System message to put first.")] = None,
    context: Annotated[bool, typer.Option("--context/--no-context", help="Put the passages into the prompt.")] = True,
    clean: Annotated[bool, typer.Option("--clean", help="Leave out supported responses that have a flagged sentence.")] = False,
    near_duplicates: Annotated[
        float | None,
        typer.Option(
            "--near-duplicates",
            metavar="SIMILARITY",
            help="Of questions so similar (Jaccard, 0 to 1) keep the best response.",
        ),
    ] = None,
) -> None:
    """Write what passed as fine-tuning data, preference pairs, or what was flagged for reviewers."""
    with our_errors() as console, opened(output) as (folder, _):
        from ragassay.jobs.decide.export.run import export as run_export
        from ragassay.jobs.decide.tables import print_export

        done = run_export(
            folder,
            dest,
            fmt,
            system=system,
            context_in_prompt=context,
            only_clean=clean,
            near_duplicates=near_duplicates,
        )
        print_export(done, dest, console)


@contextmanager
def opened(output: str) -> Iterator[tuple[Folder, Manifest]]:
    """An output folder that nobody writes to meanwhile, and its manifest."""
    folder = existing_output(output)
    with locked(folder):
        yield folder, read_manifest(folder)


def _page(output: Folder, to: str | None) -> tuple[Folder, str]:
    """Folder and name of the page to write.

    Raises:
        OutputError: Something else stands there.
    """
    place, name = open_file(to) if to else (output, "report.html")
    page, uri = file_of(place, name), place.uri_of(name)
    refuse_inside(output, page, uri)
    info = page.fs.get_file_info(page.root)
    if info.type == FileType.Directory:
        raise OutputError(f"{uri} is a folder: name a file in it")
    if info.type == FileType.File and info.size:  # an empty one is what mktemp makes
        with page.fs.open_input_stream(page.root) as stream:
            if stream.read(len(PAGE_START)).lower() != PAGE_START:
                raise OutputError(f"{uri} exists and is no report: name another file")
    return place, name


def label_source(
    label: str | None,
    labels: str | None,
    true_means: Verdict | None,
    ignore_label: list[str] | None,
    sentence_labels: str | None,
    where: list[str] | None,
) -> LabelSource | None:
    """What the label options of a command say; None without --label.

    Raises:
        ConfigError: They do not go together.
    """
    if label is None and labels is not None:
        raise ConfigError("--labels names a file: say with --label which of its columns holds the labels")
    if label is None:
        return None
    meaning = true_means.value if true_means else None
    pairs = {}
    for condition in where or []:
        name, sign, value = condition.partition("=")
        if not (name and sign):
            raise ConfigError(f"--where {condition!r} must be COLUMN=VALUE, such as split=train")
        pairs[name] = value
    return LabelSource(label, meaning, frozenset(ignore_label or ()), sentence_labels, pairs, labels)


def _needed(source: LabelSource | None) -> LabelSource:
    if source is None:
        raise ConfigError("name the column of the labels: --label COLUMN")
    return source


def _below(job: Job) -> dict[str, float]:
    """Where members of a job say that they flag, in place of the manifest's limits; an SLM's belongs to its value there."""
    slms = {slm.name for slm in job.slms}
    return {name: below for name, below in job.limits.items() if name not in slms and below is not None}
