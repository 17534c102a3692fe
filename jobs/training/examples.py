"""Labelled logs as training examples: prompts that scoring would send, grouped by context."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.input import Columns
from ragassay.jobs.display.quoted import quote_value
from ragassay.jobs.evaluation.labels import SENTENCE_COLUMNS, Label, LabelSource, compute_sentence_truth, parse_labels
from ragassay.jobs.storage.folder import read_user_table
from ragassay.jobs.training import errors
from ragassay.jobs.training.reviewed import reviewed_log
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import split
from ragassay.pipeline.token_tree.tree import size
from ragassay.pipeline.training.corrupt import synthetic
from ragassay.pipeline.training.loss import Pair, Unit

Said = tuple[str | None, tuple[str, ...], str]
"""Question, passages and response."""

MORE = ("weight", "smoothing", "of")
"""Columns that a labelled log may have besides."""

LEGAL: dict[str, tuple[Callable[[Any], bool], str]] = {
    "weight": (lambda x: isinstance(x, int | float) and 0 < x < inf, "numbers above 0"),
    "smoothing": (lambda x: isinstance(x, int | float) and 0 <= x < 0.5, "numbers from 0 to below 0.5"),
    "of": (lambda x: isinstance(x, str), "responses"),
}


@dataclass
class Group:
    """All labels about one context, the minimal pairs among them, and the tokens of the tree of their prompts."""

    context: str
    units: list[Unit] = field(default_factory=list)
    tokens: int = 0
    pairs: list[Pair] = field(default_factory=list)


@dataclass
class Examples:
    """What a labelled log gives to train on.

    Attributes:
        groups: Labels by context, in the log's order.
        counts: What was taken and what left out: units by label, rows by reason.
    """

    groups: list[Group]
    counts: Counter[str]


def read_examples(
    uri: str,
    source: LabelSource,
    columns: Columns,
    builder: PromptBuilder,
    nlp: Any,
    max_tokens: int,
    *,
    corruptions: int = 0,
) -> Examples:
    """Turn a labelled log into training examples.

    A sentence that labelled sentences or spans speak of has a label of its own. Else every sentence of a correct response is
    supported, and of any other response at least one is not. Columns may say more of a row: `weight`, how much it counts
    (1); `smoothing`, the chance that its label is wrong (0); `of`, the response over the same context that it changes a
    little.

    Args:
        uri: Parquet file; or, where the labels are in a file, the output folder that it speaks of.
        source: Where its labels are.
        columns: Names of its columns.
        builder: Prompts of the SLM.
        nlp: The splitter.
        max_tokens: A longer prompt is left out, and counted.
        corruptions: Synthetic statements of each label that every context gets; see `pipeline.training.corrupt`.

    Raises:
        InputError: The file can't be read, lacks a column, or has no two classes of labels.
    """
    needed = [columns.question, columns.context, columns.response, source.column]
    table = reviewed_log(uri, source, columns) if source.file else read_user_table(uri, needed)
    labels = parse_labels(table[source.column], source)
    found = next(
        (
            name
            for name in ([source.sentence_column] if source.sentence_column else SENTENCE_COLUMNS)
            if name in table.column_names
        ),
        None,
    )
    parts = table[found].to_pylist() if found else [None] * len(table)
    texts = [table[name].to_pylist() for name in (columns.question, columns.context, columns.response)]
    said_more = [_more(uri, table, name) for name in MORE]
    single: dict[Said, Unit] = {}
    changed: list[tuple[Said, Said]] = []
    groups: dict[tuple[str, ...], Group] = {}
    questions: dict[tuple[str, ...], str] = {}
    counts: Counter[str] = Counter()
    for question, context, response, label, said, weight, smoothing, of in zip(*texts, labels, parts, *said_more, strict=True):
        passages = tuple(p for p in ([context] if isinstance(context, str) else context or []) if p)
        spans = split(nlp, [response or ""])[0]
        labelled = label is not None or (source.file and said)  # reviewers may speak of single sentences
        if not labelled or not passages or not spans:
            counts["rows without label, context or sentence"] += 1
            continue
        (encoded,) = builder.encode([(question or "", passages, [response[start:end] for start, end in spans])])
        prompts = encoded.prompts()
        if max(map(len, prompts)) > max_tokens:
            counts[f"rows with a prompt of over {max_tokens:,} tokens"] += 1
            continue
        group = groups.setdefault(passages, Group(hashlib.sha256("\n".join(passages).encode()).hexdigest()))
        units = _units(prompts, compute_sentence_truth(spans, said, label), label)
        belief = {name: value for name, value in (("weight", weight), ("smoothing", smoothing)) if value is not None}
        group.units += [unit._replace(**belief) for unit in units]
        if len(units) == 1:
            single[question, passages, response] = units[0]
        if of:
            changed.append(((question, passages, response), (question, passages, of)))
        questions[passages] = question or ""
    for passages, pair in _pairs(changed, single):
        groups[passages].pairs.append(pair)
    for passages, question in questions.items() if corruptions else ():
        rng = Random(groups[passages].context)
        inside = [text[start:end] for text, spans in zip(passages, split(nlp, passages), strict=True) for start, end in spans]
        made = synthetic(inside, [], "\n".join(passages), corruptions, rng)
        (encoded,) = builder.encode([(question, passages, [text for text, _ in made])])
        for prompt, (_, supported) in zip(encoded.prompts(), made, strict=True):
            if len(prompt) <= max_tokens:
                groups[passages].units.append(Unit((prompt,), supported))
                counts["synthetic"] += 1
    for group in groups.values():
        group.units = list({unit[:2]: unit for unit in reversed(group.units)}.values())[::-1]  # the first of equal ones
        group.pairs = list(dict.fromkeys(group.pairs))
        group.tokens = size(prompt for unit in group.units for prompt in unit.prompts)
        counts.update("supported" if unit.supported else "unsupported" for unit in group.units)
        counts.update("minimal pairs" for _ in group.pairs)
    if not (counts["supported"] and counts["unsupported"]):
        raise InputError(errors.ONE_KIND_OF_LABEL, file=uri, supported=counts["supported"], unsupported=counts["unsupported"])
    return Examples([group for group in groups.values() if group.units], counts)


def _pairs(changed: Sequence[tuple[Said, Said]], single: Mapping[Said, Unit]) -> Iterator[tuple[tuple[str, ...], Pair]]:
    """Minimal pairs, with their passages: what changes another of the other label, both of one sentence."""
    for said, of in changed:
        one, other = single.get(said), single.get(of)
        if one and other and one.supported != other.supported and len(one.prompts) == len(other.prompts) == 1:
            good, bad = (one, other) if one.supported else (other, one)
            yield said[1], Pair(good.prompts[0], bad.prompts[0])


def _more(uri: str, table: pa.Table, name: str) -> list[Any]:
    """One of the columns MORE, checked; nulls where there is none."""
    if name not in table.column_names:
        return [None] * len(table)
    values: list[Any] = table[name].to_pylist()
    legal, wanted = LEGAL[name]
    for place, value in enumerate(values):
        if value is not None and not legal(value):
            raise InputError(errors.WRONG_VALUE, file=uri, column=name, value=quote_value(value), row=place, wanted=wanted)
    return values


def hold_out(groups: Sequence[Group], share: float) -> tuple[list[Group], list[Group]]:
    """Part groups by a hash of their context: training, held out. The same context falls the same way in every run."""
    held = [int(group.context[:8], 16) < share * 2**32 for group in groups]
    return [g for g, out in zip(groups, held, strict=True) if not out], [g for g, out in zip(groups, held, strict=True) if out]


def parted(groups: Sequence[Group], limit: int) -> list[Group]:
    """Groups with those of a larger tree cut into several over the same context: attention costs the square of a tree."""
    result: list[Group] = []
    for group in groups:
        if group.tokens <= limit:
            result.append(group)
            continue
        part = Group(group.context, pairs=group.pairs)
        for unit in sorted(group.units):
            tokens = size(prompt for each in [*part.units, unit] for prompt in each.prompts)
            if part.units and tokens > limit:
                result.append(part)
                part = Group(group.context, pairs=group.pairs)
                tokens = size(unit.prompts)
            part.units.append(unit)
            part.tokens = tokens
        result.append(part)
    return result


def _units(prompts: Sequence[tuple[int, ...]], truth: Sequence[bool | None], label: Label) -> list[Unit]:
    units = [Unit((prompt,), known) for prompt, known in zip(prompts, truth, strict=True) if known is not None]
    if units or label is None:
        return units
    if label is Label.CORRECT:
        return [Unit((prompt,), True) for prompt in prompts]
    return [Unit(tuple(prompts), False)]
