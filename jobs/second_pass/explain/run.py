"""`explain`: choose flagged sentences, ask about them, write what came, and account for every one."""

import math
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from ragassay.jobs.config.job import Job
from ragassay.jobs.output.lock import lock_output
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.output.sidecar import open_explanations
from ragassay.jobs.output.snapshot import Snapshot, read_snapshot
from ragassay.jobs.progress.counts import open_board
from ragassay.jobs.progress.task import task
from ragassay.jobs.runtime.dataflow import compute_needed_resources, run_dataflow
from ragassay.jobs.runtime.ray_session import ray_session
from ragassay.jobs.second_pass.explain import errors
from ragassay.jobs.second_pass.explain.account import count_results, make_cost_budget
from ragassay.jobs.second_pass.explain.answers import AnswerFiles, answers_folder, read_written_answers
from ragassay.jobs.second_pass.explain.choose import FlaggedRows, choose_rows, read_flagged_rows
from ragassay.jobs.second_pass.explain.entries import read_entries, remove_outdated_rows
from ragassay.jobs.second_pass.scored_rows import group_by_file, make_row_source
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.engines.server import ModelEndpoint, ServerSettings, read_api_key
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.reasoning.config import Reasoner, resolve_engine
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.pipeline.stages.explain import ExplainStage
from ragassay.schemas.explained import ExplainRun
from ragassay.schemas.explanations import explanations_partition_key, explanations_schema
from ragassay.schemas.manifest import Manifest

LOCK = "_lock-explain"
"""Held while explanations are made, which takes hours: runs need not wait for it."""


@dataclass(frozen=True)
class ExplainOptions:
    """What is explained, and what that may cost.

    Attributes:
        sentences: Flagged sentences at most, of the whole output: the same command asks nothing twice. None takes every one.
        stratify: Column of which every value gets its part, by chance; None takes the worst responses first.
        seed: Of that chance.
        dollars: US dollars that this run may spend; None sets no limit.
    """

    sentences: int | None = None
    stratify: str | None = None
    seed: int = 0
    dollars: float | None = None


def explain_output(
    job: Job,
    output: Folder,
    manifest: Manifest,
    strategy: Strategy | None,
    options: ExplainOptions,
    console: Console,
) -> ExplainRun:
    """Explain flagged sentences of an output folder, and write `explanations/`.

    Args:
        job: Its `escalation.explainer` explains; a run that holds the manifest is waited for as its `runtime` says.
        output: The output folder, finalised; nobody else explains it meanwhile (LOCK).
        manifest: Its manifest, which gets a record of the run, here and on disk.
        strategy: How the model may disagree; None takes the job's.
        options: What is explained.
        console: Where progress goes.

    Returns:
        The run's record.

    Raises:
        RagassayError: See `pipeline.errors`; no answer is lost, the same command goes on where it stopped.
    """
    reasoner = _prepare_reasoner(job.escalation.explainer, options)
    strategy = strategy or reasoner.strategy
    started, now = time.perf_counter(), datetime.now(UTC)
    run_id = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

    def explain(snapshot: Snapshot, _: Manifest) -> ExplainRun:
        run = ExplainRun(run_id, now.isoformat(timespec="seconds"), strategy, reasoner.model)
        _explain(job, reasoner, output, snapshot, manifest, run, options, console)
        run.seconds = round(time.perf_counter() - started, 3)
        run.finished = datetime.now(UTC).isoformat(timespec="seconds")
        _update_manifest(output, manifest, lambda known: known.explained.append(run), math.inf, console)
        open_explanations(output, strategy).delete_checkpoint()
        AnswerFiles(output, strategy).delete_written({entry["request"] for _, entry in read_entries(output, strategy)})
        return run

    # A run may give other verdicts meanwhile. If that leaves flags without explanations, it is done again, and asks only those.
    return read_snapshot(output, explain, checks_all=False)


def _explain(
    job: Job,
    reasoner: Reasoner,
    output: Folder,
    snapshot: Snapshot,
    manifest: Manifest,
    run: ExplainRun,
    budget: ExplainOptions,
    console: Console,
) -> None:
    """Explain, and count in the run's record what came of it."""
    strategy = Strategy(run.strategy)
    flagged = read_flagged_rows(snapshot, budget.stratify)
    snapshot.check()
    chosen = choose_rows(flagged, budget.sentences, budget.stratify is not None, budget.seed)
    identity = {**reasoner.engine.identify_weights(reasoner), **reasoner.identity(strategy)}
    dataset = open_explanations(output, strategy)
    advice = f"move {output.format_address(dataset.folder)} away"
    dataset.check_settings(manifest.reasoners.get(strategy), identity, f"explanations ({strategy})", advice)
    dataset.discard_uncommitted()
    sentences = dict(zip(flagged.keys.tolist(), flagged.sentences, strict=True))
    stay = remove_outdated_rows(
        output, strategy, sentences, set(flagged.keys[chosen].tolist()), AnswerFiles(output, strategy).keep_answers
    )
    todo = chosen[~np.isin(flagged.keys[chosen], np.array(sorted(stay), dtype=np.int64))]
    run.flagged = {"responses": len(flagged.keys), "sentences": int(flagged.counts.sum())}
    run.chosen = {"responses": len(chosen), "sentences": int(flagged.counts[chosen].sum())}
    if len(todo):
        wait = job.runtime.wait_seconds
        _update_manifest(output, manifest, lambda known: known.reasoners.update({strategy: identity}), wait, console)
        size = int(flagged.counts[todo].sum())
        console.print(f"{size} flagged sentences of {len(todo)} responses to explain")
        stage = _make_stage(reasoner, strategy, identity, run.run_id, output, budget)
        with ExitStack() as ray:
            with task(console, "loading", "Ray"):
                ray.enter_context(ray_session(job.runtime, *compute_needed_resources([stage])))
            _ask(job.runtime.block_mib, output, flagged, todo, stage, strategy, console, size)
    count_results(output, manifest, run, reasoner, {key: sentences[key] for key in flagged.keys[chosen].tolist()})


def _update_manifest(
    output: Folder, manifest: Manifest, change: Callable[[Manifest], None], wait: float, console: Console
) -> None:
    """Change the manifest as it is by now: runs may have changed it since it was read."""
    with lock_output(output, "explain", wait, console):
        now = read_manifest(output)
        change(now)
        write_manifest(output, now)
    change(manifest)


def _prepare_reasoner(explainer: Reasoner | None, budget: ExplainOptions) -> Reasoner:
    if explainer is None:
        raise ConfigError(errors.NO_REASONER)
    if budget.dollars is not None and explainer.price is None:
        raise ConfigError(errors.NO_PRICE)
    if budget.dollars is not None and (explainer.replicas.max > 1 or not isinstance(explainer.engine, ServerSettings)):
        raise ConfigError(errors.BUDGET_OF_SEVERAL)
    if isinstance(explainer.engine, ServerSettings):
        read_api_key(ModelEndpoint("explain", explainer.model, explainer.engine))  # before anything is touched
    return resolve_engine(explainer)


def _make_stage(
    reasoner: Reasoner, strategy: Strategy, identity: Mapping[str, Any], run_id: str, output: Folder, budget: ExplainOptions
) -> ExplainStage:
    threads = getattr(reasoner.engine, "threads", None) or max(1, (os.cpu_count() or 1) // reasoner.replicas.max)
    purse = None
    if budget.dollars is not None:
        purse = partial(make_cost_budget, output, strategy, reasoner, budget.dollars)
    answers = partial(AnswerFiles, output, strategy, read_written_answers(output, strategy))
    return ExplainStage(reasoner, strategy, dict(identity), run_id, threads, answers, purse)


def _ask(
    block_mib: float,
    output: Folder,
    flagged: FlaggedRows,
    todo: Ints,
    stage: ExplainStage,
    strategy: Strategy,
    console: Console,
    size: int,
) -> None:
    keys = {key: explanations_partition_key(key) for file in flagged.files for key in file.keys}
    wanted = group_by_file(flagged.files, flagged.file_numbers[todo], flagged.keys[todo])
    names = list(keys.values())
    sink = open_explanations(output, strategy).make_sink(["strategy", *names], explanations_schema(names))
    kept = answers_folder(strategy)
    before = len(output.list(kept, ".json"))
    explaining = task(console, "explaining", "", size, "sentences", count=lambda: len(output.list(kept, ".json")) - before)
    with open_board(1) as board, explaining:
        run_dataflow(make_row_source(output, wanted, keys), [stage], sink, block_mib, board)
