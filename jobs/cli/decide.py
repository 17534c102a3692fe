"""The commands that turn scores into decisions: evaluate, calibrate, drift, report, export."""

import sys
from typing import Annotated

import typer

from ragassay.jobs.cli import errors
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
from ragassay.jobs.cli.outputs import page_file, read_output, rows_of, writable
from ragassay.jobs.config.job import load_job
from ragassay.jobs.config.members import MembersConfig
from ragassay.jobs.export.run import Format
from ragassay.jobs.output.manifest import existing_output, has_text, needs_text
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.manifest import DriftCheck, Manifest

app = typer.Typer()


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
    resamples: Resamples = None,
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
    with our_errors() as console:
        if explanations:
            from ragassay.jobs.cli.explain_summary import print_measured
            from ragassay.jobs.evaluation.explanation_quality import measure_explanations

            if len(slices or []) > 1 or (where and not label):
                raise ConfigError(errors.ONE_SLICE_OF_EXPLANATIONS)
            defaults = load_job(config).evaluation
            truth = label_source(label, labels, true_means, ignore_label, sentence_labels, where, defaults)
            column = slices[0] if slices else None
            with doing("evaluating", "explanations"):
                measured = read_output(
                    output, lambda folder, _: measure_explanations(folder, truth, column, judgements), console
                )
            print_measured(measured, console)
            return
        if judgements:
            raise ConfigError(errors.JUDGEMENTS_WITHOUT_EXPLANATIONS)
        from ragassay.jobs.evaluation.evaluate import Evaluation
        from ragassay.jobs.evaluation.evaluate import evaluate as run_evaluate
        from ragassay.jobs.report.tables import print_cascade, print_evaluation, print_headline, print_slices, print_uneven

        defaults = load_job(config).evaluation
        source = needed(label_source(label, labels, true_means, ignore_label, sentence_labels, where, defaults))

        def measure(folder: Folder, manifest: Manifest) -> Evaluation:
            with doing("evaluating", unit="steps"):
                return run_evaluate(
                    folder,
                    manifest,
                    source,
                    group=group or defaults.group,
                    slices=slices or [],
                    resamples=defaults.resamples if resamples is None else resamples,
                    judge=defaults.reference,
                    cascade=cascade,
                )

        found = read_output(output, measure, console)
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
    config: Config = None,
    to: Annotated[str | None, typer.Option("--to", help="File to write; OUTPUT/calibration.json if none is named.")] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Fit threshold, mean, policy, weights and probabilities to labels; `finalize --calibration` uses the file."""
    with our_errors() as console:
        from ragassay.jobs.evaluation.calibrate import calibrate as run_calibrate
        from ragassay.jobs.output.calibration_file import calibration_target, write_calibration
        from ragassay.jobs.report.tables import print_calibration
        from ragassay.pipeline.calibration.target import parse_target

        wanted, written_to = parse_target(target, of.value), calibration_target(existing_output(output), to)
        defaults = load_job(config).evaluation
        source = label_source(label, labels, true_means, ignore_label, None, where, defaults)

        def fit(folder: Folder, manifest: Manifest) -> Calibration:
            with doing("calibrating", unit="fits"):
                return run_calibrate(
                    folder,
                    manifest,
                    wanted,
                    source,
                    group=group or defaults.group,
                    delta=certify,
                    threshold_only=threshold_only,
                )

        found = read_output(output, fit, console)
        with writable(to):
            address = write_calibration(found, written_to)
        print_calibration(found, address, output, console)


@app.command()
def drift(output: Output, config: Config = None, fail_on_drift: FailOnDrift = False, log_format: Log = LogFormat.TEXT) -> None:
    """Compare the last partition with the history before it."""
    with our_errors() as console:
        from ragassay.jobs.evaluation.labelled import member_values_of, stats_of
        from ragassay.jobs.report.tables import print_drift
        from ragassay.jobs.verdicts.drift import check_drift

        def compared(folder: Folder, manifest: Manifest) -> DriftCheck:
            return check_drift(load_job(config).verdict, manifest, stats_of(folder, member_values_of(manifest)))

        check = read_output(output, compared, console)
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
    with our_errors() as console:
        from ragassay.jobs.evaluation.compare import Compared
        from ragassay.jobs.evaluation.compare import compare as run_compare
        from ragassay.jobs.report.tables import print_compared

        job = load_job(config)
        source = label_source(label, None, true_means, ignore_label, None, None, job.evaluation)
        below = _below(job.members) if config else {}

        def compared(folder: Folder, manifest: Manifest) -> Compared:
            with doing("comparing"):
                return run_compare(folder, manifest, last=last, order_by=order_by, source=source, below=below)

        print_compared(read_output(output, compared, console), console)


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
    resamples: Resamples = None,
    config: Config = None,
    everything: Everything = False,
    all_explanations: Annotated[
        bool, typer.Option("--all-explanations", help="Show also explanations by which the model disagrees with the flag.")
    ] = False,
    to: Annotated[str | None, typer.Option("--to", help="File to write; OUTPUT/report.html if none is named.")] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Write one self-contained HTML page about OUTPUT; with --label also all that `evaluate` does."""
    with our_errors() as console:
        from ragassay.jobs.evaluation.compare import compare as run_compare
        from ragassay.jobs.evaluation.evaluate import Evaluation
        from ragassay.jobs.evaluation.evaluate import evaluate as run_evaluate
        from ragassay.jobs.evaluation.labelled import member_values_of, stats_of
        from ragassay.jobs.report.gather import gather
        from ragassay.jobs.report.page import render
        from ragassay.jobs.report.scales import scales_of
        from ragassay.jobs.report.tables import print_evaluation, print_headline, print_uneven
        from ragassay.jobs.verdicts.drift import check_drift

        job = load_job(config)
        place, name = page_file(existing_output(output), to, "report")
        defaults = job.evaluation
        source = label_source(label, labels, true_means, ignore_label, sentence_labels, where, defaults)
        in_logs = source if source and not source.file else None
        below = _below(job.members) if config else {}

        def page_of(folder: Folder, manifest: Manifest) -> tuple[Evaluation | None, str]:
            values = member_values_of(manifest) if manifest.last_fit else {}
            drift_check = check_drift(job.verdict, manifest, stats_of(folder, values) if values else {})
            with doing("reading", total=rows_of(manifest), unit="rows"):
                column = in_logs.column if in_logs else None
                scales = scales_of(manifest, below)
                found = gather(folder, slices or [], column, all_explanations, scales, texts=has_text(manifest))
            measured = None
            if source is not None:
                with doing("evaluating", unit="steps"):
                    measured = run_evaluate(
                        folder,
                        manifest,
                        source,
                        group=group or defaults.group,
                        slices=slices or [],
                        resamples=defaults.resamples if resamples is None else resamples,
                        judge=defaults.reference,
                        cascade=None,
                    )
            with doing("writing", "report"):
                compared = run_compare(folder, manifest, source=in_logs, below=below) if len(values) > 1 else None
                return measured, render(output, manifest, found, drift_check, measured, compared)

        evaluation, page = read_output(output, page_of, console)
        if evaluation is not None:
            print_headline(evaluation, console)
            if everything:
                print_evaluation(evaluation, console)
            else:
                print_uneven(evaluation.label, console)
        with writable(to):
            place.write(name, page)
        console.print(f"report  {place.strip_credentials(name)}", markup=False)


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
    with our_errors() as console:
        from ragassay.jobs.export.run import Exported
        from ragassay.jobs.export.run import export as run_export
        from ragassay.jobs.report.tables import print_export

        def write(folder: Folder, manifest: Manifest) -> Exported:
            needs_text(manifest, output, "`export`")
            with doing("writing", fmt.value, rows_of(manifest), "rows"):
                return run_export(
                    folder,
                    dest,
                    fmt,
                    system=system,
                    context_in_prompt=context,
                    only_clean=clean,
                    near_duplicates=near_duplicates,
                )

        # It checks all partitions itself, before the file is there: a second attempt would not write over it.
        print_export(read_output(output, write, console, whole=False), dest, console)


def _below(members: MembersConfig) -> dict[str, float]:
    """Where members of a job say that they flag, in place of the manifest's limits; an SLM's belongs to its value there."""
    slms = {slm.name for slm in members.slms}
    return {name: below for name, below in members.suspicious_below.items() if name not in slms and below is not None}
