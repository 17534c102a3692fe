"""The commands that turn scores into decisions: evaluate, calibrate, drift, report, export."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pyarrow.fs import FileType

from ragassay.jobs.cli.console import DRIFT_EXIT, Log, doing, our_errors
from ragassay.jobs.cli.options import (
    Config,
    Everything,
    FailOnDrift,
    Group,
    IgnoreLabel,
    Label,
    Labels,
    Output,
    Resamples,
    SentenceLabels,
    Slices,
    TrueMeans,
    Verdict,
    Where,
    label_source,
    needed,
)
from ragassay.jobs.config import Job, load_job
from ragassay.jobs.decide.export.run import Format
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output, has_text, needs_text, read_manifest
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.storage import Folder, file_of, open_file, refuse_inside
from ragassay.jobs.writable import check_writable
from ragassay.pipeline.errors import ConfigError, OutputError
from ragassay.schemas.manifest import Manifest

app = typer.Typer()

PAGE_HEAD = 1024
"""Bytes of a page within which its title stands: by that it is told from the pages of others."""


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
    everything: Everything = False,
    explanations: Annotated[
        bool,
        typer.Option("--explanations", help="Measure the explanations instead; each value of a --slice is a data set."),
    ] = False,
    judgements: Annotated[
        str | None, typer.Option("--judgements", metavar="FILE", help="With --explanations: what people say of the reasons.")
    ] = None,
    log_format: Log = LogFormat.TEXT,
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
            with doing("evaluating", "explanations"):
                measured = measure_explanations(folder, truth, column, judgements)
            print_measured(measured, console)
            return
        if judgements:
            raise ConfigError("--judgements are of explanations: name --explanations too")
        from ragassay.jobs.decide.evaluate import evaluate as run_evaluate
        from ragassay.jobs.decide.headline import print_headline
        from ragassay.jobs.decide.tables import print_cascade, print_evaluation, print_slices, print_uneven

        source = needed(label_source(label, labels, true_means, ignore_label, sentence_labels, where))
        judge = load_job(config).judge
        with doing("evaluating", unit="steps"):
            found = run_evaluate(
                folder, manifest, source, group=group, slices=slices or [], resamples=resamples, judge=judge, cascade=cascade
            )
        print_headline(found, console)
        if everything:
            console.print()
            print_evaluation(found, console)
            return
        print_uneven(found.label, console)
        print_slices(found, console)  # none, unless it was asked for
        print_cascade(found, console)


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
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Fit threshold, mean, policy, weights and probabilities to labels; `finalize --calibration` uses the file."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.calibrate import calibrate as run_calibrate
        from ragassay.jobs.decide.tables import print_calibration
        from ragassay.jobs.output.calibration_file import calibration_target, write_calibration
        from ragassay.pipeline.calibration.target import parse_target

        wanted, written_to = parse_target(target, of.value), calibration_target(folder, to)
        source = label_source(label, labels, true_means, ignore_label, None, where)
        with doing("calibrating", unit="fits"):
            found = run_calibrate(folder, manifest, wanted, source, group=group, delta=certify, threshold_only=threshold_only)
        print_calibration(found, write_calibration(found, written_to), output, console)


@app.command()
def drift(output: Output, config: Config = None, fail_on_drift: FailOnDrift = False, log_format: Log = LogFormat.TEXT) -> None:
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
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Show what each SLM and detector alone would flag among the last responses, and where they agree."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.compare import compare as run_compare
        from ragassay.jobs.decide.tables import print_compared

        source = label_source(label, None, true_means, ignore_label, None, None)
        below = _below(load_job(config)) if config else {}
        with doing("comparing"):
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
    everything: Everything = False,
    all_explanations: Annotated[
        bool, typer.Option("--all-explanations", help="Show also explanations by which the model disagrees with the flag.")
    ] = False,
    to: Annotated[str | None, typer.Option("--to", help="File to write; OUTPUT/report.html if none is named.")] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Write one self-contained HTML page about OUTPUT; with --label also all that `evaluate` does."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.compare import compare as run_compare
        from ragassay.jobs.decide.evaluate import evaluate as run_evaluate
        from ragassay.jobs.decide.headline import print_headline
        from ragassay.jobs.decide.labelled import member_values_of, stats_of
        from ragassay.jobs.decide.report.gather import gather
        from ragassay.jobs.decide.report.page import render
        from ragassay.jobs.decide.report.scales import scales_of
        from ragassay.jobs.decide.tables import print_evaluation, print_uneven
        from ragassay.jobs.verdict.drift import check_drift

        job = load_job(config)
        place, name = page_file(folder, to, "report")
        source = label_source(label, labels, true_means, ignore_label, sentence_labels, where)
        values = member_values_of(manifest) if manifest.last_fit else {}
        drift_check = check_drift(job, manifest, stats_of(folder, values) if values else {})
        in_logs = source if source and not source.file else None
        below = _below(job) if config else {}
        with doing("reading", total=rows_of(manifest), unit="rows"):
            column = in_logs.column if in_logs else None
            scales = scales_of(manifest, below)
            found = gather(folder, slices or [], column, all_explanations, scales, texts=has_text(manifest))
        evaluation = None
        if source is not None:
            with doing("evaluating", unit="steps"):
                evaluation = run_evaluate(
                    folder,
                    manifest,
                    source,
                    group=group,
                    slices=slices or [],
                    resamples=resamples,
                    judge=job.judge,
                    cascade=None,
                )
            print_headline(evaluation, console)
            if everything:
                print_evaluation(evaluation, console)
            else:
                print_uneven(evaluation.label, console)
        with doing("writing", "report"):
            compared = run_compare(folder, manifest, source=in_logs, below=below) if len(values) > 1 else None
            place.write(name, render(output, manifest, found, drift_check, evaluation, compared))
        console.print(f"report  {place.address_of(name)}", markup=False)


@app.command()
def export(
    output: Output,
    dest: Annotated[str, typer.Argument(help="File to write, a path or URI.")],
    fmt: Annotated[
        Format,
        typer.Option(
            "--format",
            help="messages (JSON lines) or parquet: responses that passed. dpo: pairs to one question, of which one passed. "
            "flagged: a row a flagged sentence, for reviewers. label-studio, argilla: responses with one, to import (JSON).",
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
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Write what passed as fine-tuning data, preference pairs, or what was flagged for reviewers."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.export.run import export as run_export
        from ragassay.jobs.decide.tables import print_export

        needs_text(manifest, output, "`export`")
        with doing("writing", fmt.value, rows_of(manifest), "rows"):
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


def rows_of(manifest: Manifest) -> int:
    """Rows of the output."""
    return manifest.scored_rows().total()


def page_file(output: Folder, to: str | None, kind: str) -> tuple[Folder, str]:
    """Folder and name of the page to write.

    Args:
        output: The output folder.
        to: File, as a path or URI.
        kind: report or review: a page of ours of the same kind is written anew; `KIND.html` in OUTPUT if none is named.

    Raises:
        OutputError: Something else stands there, or it can't be written.
    """
    place, name = open_file(to) if to else (output, f"{kind}.html")
    page, uri = file_of(place, name), place.address_of(name)
    refuse_inside(output, page, uri)
    check_writable(page, uri)
    info = page.fs.get_file_info(page.root)
    if info.type == FileType.File and info.size:  # an empty one is what mktemp makes
        with page.fs.open_input_stream(page.root) as stream:
            if f"<title>RAGAssay {kind}: ".encode() not in stream.read(PAGE_HEAD):
                raise OutputError(f"{uri} exists and is no {kind} page of ours: name another file")
    return place, name


def _below(job: Job) -> dict[str, float]:
    """Where members of a job say that they flag, in place of the manifest's limits; an SLM's belongs to its value there."""
    slms = {slm.name for slm in job.slms}
    return {name: below for name, below in job.limits.items() if name not in slms and below is not None}
