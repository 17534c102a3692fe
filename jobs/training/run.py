"""`ragassay tune`: train an SLM's adapter on a labelled log."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ragassay.jobs.config.job import Job
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.progress.task import reach, task
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.storage.writable import check_writable
from ragassay.jobs.training import errors
from ragassay.jobs.training.adapter import write_adapter
from ragassay.jobs.training.examples import Group, hold_out, parted, read_examples
from ragassay.jobs.training.train import CHECKPOINT, Look, Recipe, train
from ragassay.pipeline.engines.adapter import WEIGHTS_FILE
from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.engines.weights import MAX_WINDOW
from ragassay.pipeline.errors import ConfigError, InputError, OutputError
from ragassay.pipeline.slm.config import ADAPTER_SETTINGS, VERIFIER_PROMPT, Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import load_splitter
from ragassay.pipeline.training.lora import load_for_training

LOOK_LABELS = 400
"""Labels of the held-out contexts that a look takes: more cost time and tell little more."""


def tune(
    job: Job,
    slm: Slm,
    data: str,
    source: LabelSource,
    out: Path,
    recipe: Recipe,
    *,
    held_out: float,
    corruptions: int,
    watch: Sequence[str] = (),
    console: Console,
) -> list[Look]:
    """Train an adapter for one SLM of a job, under the very prompts that scoring sends.

    Args:
        job: For columns and splitter.
        slm: The SLM; its adapter comes out. One that it has already is gone on from.
        data: Labelled log, a Parquet file; or, where the labels are in a file, the output folder that it speaks of.
        source: Where its labels are.
        out: Folder of the adapter; a broken training that lies there is taken up.
        recipe: How to train.
        held_out: Share of the contexts to look at, not to train on.
        corruptions: Synthetic statements of each label that every context gets besides.
        watch: Labelled logs of other origin that every look measures, and by which the best matrices are chosen.
        console: Told how it goes.

    Returns:
        The held-out figures as training went on.

    Raises:
        InputError: The log can't be used.
        ModelError: The model can't be trained.
        OutputError: The folder has a finished adapter, or can't be written.
    """
    check_writable(open_folder(str(out / WEIGHTS_FILE)), str(out))
    if (out / WEIGHTS_FILE).exists():
        raise OutputError(errors.FINISHED_ALREADY, path=out)
    builder = PromptBuilder(slm, load_tokenizer(slm))
    nlp = load_splitter(job.splitting.pipeline, job.splitting.language)
    window = min(slm.local_engine.max_model_len or MAX_WINDOW, MAX_WINDOW)
    with task(console, "reading", Path(data).name):
        examples = read_examples(data, source, job.input.columns, builder, nlp, window, corruptions=corruptions)
        own = replace(source, file=None)
        watched = {
            other: _few(parted(read_examples(other, own, job.input.columns, builder, nlp, window).groups, recipe.pack))
            for other in dict.fromkeys(watch)
        }
    training, looked_at = hold_out(parted(examples.groups, recipe.pack), held_out)
    looked_at = _few(looked_at)
    for which, groups in (("to train on", training), ("held out", looked_at), *((f"of {w}", g) for w, g in watched.items())):
        truth = {unit.supported for group in groups for unit in group.units}
        if len(truth) < 2:
            raise InputError(errors.CONTEXTS_OF_ONE_KIND, file=data, which=which)
    _tell(examples.counts, training, looked_at, console)
    with task(console, "loading", slm.name):
        model = load_for_training(slm, rank=recipe.rank, layers=recipe.layers, seed=recipe.seed)
    total = round(recipe.epochs * sum(group.tokens for group in training))
    with task(console, "training", slm.name, total, "tokens", tokens=True):
        looks = train(
            model,
            training,
            looked_at,
            (builder.yes, builder.no),
            recipe,
            out,
            say=lambda line: console.print(line, markup=False, highlight=False),
            tick=lambda tokens: reach(tokens, "tokens"),
            watched=dict(zip(_short(list(watched)), watched.values(), strict=True)),
        )
    write_adapter(model, slm, recipe, dict(examples.counts), Path(data).name, looks, out)
    (out / CHECKPOINT).unlink(missing_ok=True)
    return looks


UNTUNED = Slm(name="verifier", prompt=VERIFIER_PROMPT, chat=False)
"""What is trained where no job file names an SLM: the embedded model under the prompt of the bundled verifier."""


def job_slm(slms: Sequence[Slm], name: str | None, base: str | None, adapter: str | None) -> Slm:
    """The SLM to train: the named one, or the only one, on another base model or from an adapter if one is given.

    Args:
        slms: Those of a job file; `UNTUNED` where there is none.
        name: Which.
        base: Another base model for it.
        adapter: Go on from this adapter, under its prompt.

    Raises:
        ConfigError: There is no such SLM, or there are several and none is named.
    """
    if name is None and len(slms) != 1:
        raise ConfigError(errors.SEVERAL_SLMS, slms=len(slms))
    found = [slm for slm in slms if name in (None, slm.name)]
    if not found:
        raise ConfigError(errors.NO_SUCH_SLM, slm=name, slms=", ".join(slm.name for slm in slms))
    slm = found[0].model_copy(update={"model": base}) if base else found[0]
    if adapter is None:
        return slm
    return Slm.model_validate({**slm.model_dump(exclude=set(ADAPTER_SETTINGS)), "adapter": adapter})


def _short(paths: Sequence[str]) -> list[str]:
    """Names of files: their stems, where these differ."""
    stems = [Path(path).stem for path in paths]
    return stems if len(set(stems)) == len(stems) else list(paths)


def _few(groups: list[Group]) -> list[Group]:
    """Groups of some LOOK_LABELS labels, picked by the hash of their context, so that they are of all parts of a log."""
    taken: list[Group] = []
    for group in sorted(groups, key=lambda group: group.context):
        if sum(len(g.units) for g in taken) >= LOOK_LABELS:
            break
        taken.append(group)
    return taken


def _tell(counts: Counter[str], training: list[Group], looked_at: list[Group], console: Console) -> None:
    tokens = sum(group.tokens for group in training)
    plain = sum(len(prompt) for group in training for unit in group.units for prompt in unit.prompts)
    lines = [
        "labels     " + ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())),
        f"held out   {sum(len(g.units) for g in looked_at):,} labels of other contexts",
        f"tokens     {tokens:,} an epoch, {plain:,} if nothing were shared",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False)
