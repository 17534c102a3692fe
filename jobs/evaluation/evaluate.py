"""`evaluate`: how well scores and verdicts agree with labels, the paper's whole comparison on the same rows."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ragassay.jobs.config.verdict import Normalize
from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.cascade import Cascade, cascade_curve, cascade_margins
from ragassay.jobs.evaluation.choose import calibrated_on_other_half, stored_fit, stored_rule
from ragassay.jobs.evaluation.labelled import Labelled, fits_of_all, load_labelled, member_values_of, stats_of
from ragassay.jobs.evaluation.labels import Label, LabelSource
from ragassay.jobs.output.manifest import needs_text
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.runtime.endings import is_disk_full
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.fit import fit_members
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import Measure, auroc, aurocs, interval, measure, of_both, resample_parts
from ragassay.pipeline.errors import FitError, InputError, OutputError
from ragassay.pipeline.members import ValueKind
from ragassay.pipeline.slm.judge import Judge, judge_rows
from ragassay.pipeline.verdict.aggregate import Mean, Positive, legal_pairs
from ragassay.pipeline.verdict.moments import moments_of
from ragassay.pipeline.verdict.normalize import Fit, ensemble
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.versioned import Record

EVALUATION = "evaluation.json"
RESAMPLES = 1000
HISTOGRAM_BINS = 40
AS_FINALISED = "ensemble, as finalised"
AS_CASCADE = "cascade, as finalised"
ENSEMBLE = "ensemble"
ALONE = " alone"
BASELINE = "baseline: "
JUDGE = "judge "
SENTENCES = "supported against unsupported sentences"
ASKED = ("base_url", "model", "prompt", "supported", "unsupported", "top_logprobs")
"""What an answer depends on, in the order that the hashes of earlier answers were made in."""

CHUNK = 256
"""Answers are written after so many, so that what breaks off loses little."""


@dataclass(frozen=True)
class Difference:
    """AUROC of a score less that of the first, on the rows that have both.

    Attributes:
        name: The score.
        rows: Rows that have both.
        value: The difference, -1 to 1; above 0 the score is better than the first.
        low: Lower end of its bootstrap 95 % interval, of resamples that both share; null where none could be drawn.
        high: Upper end.
    """

    name: str
    rows: int
    value: float
    low: float | None
    high: float | None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the interval leaves 0 out; None where there is no interval."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Line:
    """One score of a comparison.

    Attributes:
        name: What it is.
        rows: Responses (or sentences) that have it.
        measures: Metric -> its value; empty where those rows are of one class only.
    """

    name: str
    rows: int
    measures: dict[str, Measure]


@dataclass(frozen=True)
class Comparison:
    """Every score on the same rows.

    Attributes:
        name: Which classes are told apart.
        good: Rows of the positive class.
        bad: Rows of the other.
        lines: One a score.
    """

    name: str
    good: int
    bad: int
    lines: list[Line]


@dataclass(frozen=True)
class Slice:
    """The stored scores and verdicts on the rows of one value of a column.

    Attributes:
        column: The column.
        value: Its value.
        rows: Labelled responses.
        correct: Share of them that are correct.
        flagged: Share of them with the verdict hallucinated.
        auroc: Correct against all others; null where one class is missing.
    """

    column: str
    value: str
    rows: int
    correct: float
    flagged: float
    auroc: Measure | None


@dataclass(frozen=True)
class Halves:
    """Normalisation check: mu and sigma of one half of the data against those of the other.

    Attributes:
        halves: How the data was halved: by partition or by item; or why it was not.
        fits: Member -> mu and sigma of the two halves.
        moved: Share of the labelled responses whose verdict differs between the two; null where they were not halved.
    """

    halves: str
    fits: dict[str, list[dict[str, float]]]
    moved: float | None


@dataclass(frozen=True)
class Histogram:
    """How a score is distributed, a label at a time (the paper's Figures 6 and 7).

    Attributes:
        name: The score's name in the comparisons.
        edges: Ends of the bins; what lies outside is counted in the first or the last.
        counts: Label -> responses in each bin.
        threshold: Stored tau, where the score is the one that it is used on and all rows have the same; else null.
    """

    name: str
    edges: list[float]
    counts: dict[str, list[int]]
    threshold: float | None


@dataclass(frozen=True)
class Evaluation(Record):
    """What `evaluate` found.

    Attributes:
        created: UTC, ISO 8601.
        label: Column of the labels.
        labels: Rows by label.
        where: Column -> value of the rows that were looked at; empty for all.
        elsewhere: Rows left out by that.
        unlabelled: Rows without a label.
        unscored: Labelled rows without a score.
        unmatched: Labels of a file that belong to no row.
        groups: Items (or contexts) that the bootstrap resamples.
        grouped_by: Column that makes an item, or "context".
        resamples: Bootstrap resamples.
        comparisons: Responses: correct against wrong, against partial, against both.
        sentences: Sentences, supported against unsupported; null without sentence labels.
        slices: The stored scores on parts of the rows.
        normalisation: How far verdicts depend on which half mu and sigma come from.
        histograms: The ensemble, the whole response, and the geometric and the harmonic mean, by label.
        cascade: Quality against cost, from a judge that is never asked to one that always is; null where that was not wanted.
        differences: Comparison -> AUROC of each of its other scores less the ensemble's; the last one of responses, and
            sentences.
    """

    DESCRIPTION = "an evaluation"

    created: str
    label: str
    labels: dict[str, int]
    where: dict[str, str]
    elsewhere: int
    unlabelled: int
    unscored: int
    unmatched: int
    groups: int
    grouped_by: str
    resamples: int
    comparisons: list[Comparison]
    sentences: Comparison | None
    slices: list[Slice]
    normalisation: Halves
    histograms: list[Histogram]
    cascade: Cascade | None = None
    differences: dict[str, list[Difference]] = field(default_factory=dict)


def evaluate(
    output: Folder,
    manifest: Manifest,
    source: LabelSource,
    *,
    group: str | None = None,
    slices: Sequence[str] = (),
    resamples: int = RESAMPLES,
    judge: Judge | None = None,
    cascade: bool | None = False,
) -> Evaluation:
    """Compare scores and verdicts with labels, and write `evaluation.json`.

    Args:
        output: A finalised output folder.
        manifest: Its manifest.
        source: Where the labels are.
        group: Column that makes an item; see `load_labelled`.
        slices: Columns whose values are looked at one by one.
        resamples: Bootstrap resamples; 0 leaves intervals out.
        judge: A served model to compare with.
        cascade: Also draw the cascade's quality against its cost; None draws it where there is one.

    Returns:
        The evaluation, as the file has it.

    Raises:
        RagassayError: Labels or verdicts can't be used.
    """
    values = member_values_of(manifest)
    rows = load_labelled(output, values, source, group=group, slices=slices, texts=judge is not None)
    fits = fits_of_all(output, values)
    rule = stored_rule(manifest, fits)
    scores = response_lines(rows, rule)
    if manifest.judge is not None and not np.isnan(rows.judge).all():
        scores[AS_CASCADE] = cascade_margins(rows, manifest.judge.flags_below)
    if judge is not None:
        needs_text(manifest, output.uri, "a judge")
        scores[f"{JUDGE}{judge.name}, whole response"] = ask_judge(judge, rows, output)
    scores |= baseline_lines(rows)
    of_sentences = sentence_lines(rows, rule)
    contests = list(_contests(rows.labels))
    parts = sum(len(set(rows.slices[column])) for column in slices)
    expect(len(contests) * len(scores) + len(of_sentences) + parts, "steps")
    found = Evaluation(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        label=rows.named(source.column),
        labels=dict(Counter(label.value for label in rows.labels)),
        where=dict(source.where),
        elsewhere=rows.elsewhere,
        unlabelled=rows.unlabelled,
        unscored=rows.unscored,
        unmatched=rows.unmatched,
        groups=int(rows.groups.max()) + 1,
        grouped_by=rows.grouped_by,
        resamples=resamples,
        comparisons=[_compare(name, rows, mine, scores, resamples) for name, mine in contests],
        sentences=_sentences(rows, of_sentences, resamples),
        slices=[part for column in slices for part in _slices(rows, column, resamples)],
        normalisation=_halves(output, manifest, values, rows),
        histograms=_histograms(rows, scores, rule.positive),
        cascade=None if cascade is False else cascade_curve(output, manifest, rows, resamples),
        differences=_differences(rows, scores, of_sentences, resamples),
    )
    if cascade and found.cascade is None:
        raise InputError(errors.NO_JUDGED_LABELS)
    output.write(EVALUATION, found.to_json())
    return found


def histogram_edges(score: Floats) -> Floats:
    """Return the edges of HISTOGRAM_BINS bins from the 0.5 % to the 99.5 % quantile of scores; scores that are all alike, or
    differ by rounding alone, get bins around them.

    Args:
        score: Scores, at least one, none NaN.
    """
    low, high = np.quantile(score, [0.005, 0.995])
    if high - low < 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, HISTOGRAM_BINS + 1)


def _histograms(rows: Labelled, scores: Mapping[str, Floats], policy: Positive) -> list[Histogram]:
    whole = [name for name in scores if name.endswith(", whole response")]
    policy = Positive.CLIP if policy is Positive.NONE else policy
    names = [AS_FINALISED, *whole, f"{Mean.GEOMETRIC}, {policy}", f"{Mean.HARMONIC}, {policy}"]
    labels = np.array(rows.labels)
    found = []
    for name in names:
        there = ~np.isnan(scores[name])
        if not there.any():
            continue
        score = scores[name][there]
        edges = histogram_edges(score)
        inside = np.clip(score, edges[0], edges[-1])
        counts = {
            label.value: np.histogram(inside[labels[there] == label], edges)[0].tolist() for label in Label if label in labels
        }
        taus = np.unique(rows.thresholds)
        tau = float(taus[0]) if name == names[0] and len(taus) == 1 else None
        found.append(Histogram(name, edges.tolist(), counts, tau))
    return found


def _contests(labels: Sequence[Label]) -> Iterable[tuple[str, Bools]]:
    """Which rows are told apart: correct against each other label there is, and against all."""
    array = np.array(labels)
    others = [label for label in (Label.WRONG, Label.PARTIAL) if label in labels]
    for label in others:
        yield f"correct against {label}", np.isin(array, [Label.CORRECT, label])
    if len(others) > 1:
        yield "correct against wrong and partial", np.ones(len(array), dtype=bool)


def _compare(name: str, rows: Labelled, mine: Bools, scores: Mapping[str, Floats], resamples: int) -> Comparison:
    good = rows.good
    decided = {AS_FINALISED: rows.score > rows.thresholds, AS_CASCADE: rows.passed}
    lines = []
    for line, score in scores.items():
        there = mine & ~np.isnan(score)
        passed = decided[line][there] if line in decided else None
        measures = _measure(score[there], good[there], rows.groups[there], passed, resamples)
        lines.append(Line(line, int(there.sum()), measures))
    return Comparison(name, int((mine & good).sum()), int((mine & ~good).sum()), lines)


def _measure(score: Floats, good: Bools, groups: Ints, passed: Bools | None, resamples: int) -> dict[str, Measure]:
    advance(1, "steps")
    if good.all() or not good.any():
        return {}
    return measure(score, good, np.unique(groups, return_inverse=True)[1], passed=passed, resamples=resamples)


def _sentences(rows: Labelled, scores: Mapping[str, Floats], resamples: int) -> Comparison | None:
    there = ~np.isnan(rows.sentence_good)
    good = rows.sentence_good[there] == 1
    if not len(good) or good.all() or not good.any():
        return None
    groups = np.unique(np.repeat(rows.groups, rows.counts)[there], return_inverse=True)[1]
    lines = []
    for name, score in scores.items():
        known = ~np.isnan(score[there])
        lines.append(Line(name, int(known.sum()), _measure(score[there][known], good[known], groups[known], None, resamples)))
    return Comparison(SENTENCES, int(good.sum()), int((~good).sum()), lines)


def _differences(
    rows: Labelled, scores: Mapping[str, Floats], of_sentences: Mapping[str, Floats], resamples: int
) -> dict[str, list[Difference]]:
    """Each other score beside the ensemble's, but for means and policies."""
    means = {f"{mean}, {policy}" for mean, policy in legal_pairs()}
    others = {name: score for name, score in scores.items() if name not in means}
    *_, (name, _) = _contests(rows.labels)
    found = {name: differences(others, AS_FINALISED, rows.good, rows.groups, resamples)}
    there = ~np.isnan(rows.sentence_good)
    if there.any():
        mine = {line: score[there] for line, score in of_sentences.items()}
        groups = np.unique(np.repeat(rows.groups, rows.counts)[there], return_inverse=True)[1]
        found[SENTENCES] = differences(mine, ENSEMBLE, rows.sentence_good[there] == 1, groups, resamples)
    return found


def _slices(rows: Labelled, column: str, resamples: int) -> list[Slice]:
    values = np.array(rows.slices[column], dtype=object)
    found = []
    for value in sorted(set(rows.slices[column])):
        mine = values == value
        good = rows.good[mine]
        measures = _measure(rows.score[mine], good, rows.groups[mine], None, resamples)
        found.append(
            Slice(
                column, value, int(mine.sum()), float(good.mean()), float(1 - rows.passed[mine].mean()), measures.get("auroc")
            )
        )
    return found


def _fit(name: str, value: str, values: Floats) -> Fit:
    moments = moments_of(values[~np.isnan(values)])
    return ValueKind(value).fit(name, moments)


def _halves(output: Folder, manifest: Manifest, values: dict[str, str], rows: Labelled) -> Halves:
    source = stored_fit(manifest).source
    if source not in ("run", "history"):
        return Halves(f"mu and sigma are those of the {source}, not of these responses", {}, None)
    stats = stats_of(output, values)
    places = sorted(stats)
    try:
        if len(places) > 1:
            how = "every other partition"
            fits = [fit_members(Normalize(), values, stats, places[start::2], 1) for start in (0, 1)]
        else:
            how = "every other item of the labelled responses"
            of_sentence = np.repeat(rows.groups, rows.counts) % 2
            fits = [
                {name: _fit(name, values[name], v[of_sentence == half]) for name, v in rows.values.items()} for half in (0, 1)
            ]
    except FitError:
        return Halves(f"of {how} there is too little to be fitted", {}, None)
    passed = [apply_rule(stored_rule(manifest, fit), rows.values, rows.counts).response > rows.thresholds for fit in fits]
    records: dict[str, Any] = {name: [{"mu": fit[name].mu, "sigma": fit[name].sigma} for fit in fits] for name in values}
    return Halves(how, records, float((passed[0] != passed[1]).mean()))


def response_lines(rows: Labelled, rule: Rule) -> dict[str, Floats]:
    """The paper's comparison: name -> a score a response, NaN where there is none.

    The ensemble as finalised; each member alone, and a calibration of them; the whole response without the splitter; five means
    times the policies.
    """
    lines = {AS_FINALISED: rows.score}
    if len(rows.values) > 1:
        for name, values in rows.values.items():
            alone = Rule({name: rule.fits[name]}, rule.mean, rule.positive, rule.epsilon)
            lines[f"{name}{ALONE}"] = apply_rule(alone, {name: values}, rows.counts).response
        lines["calibrated on the other half"] = calibrated_on_other_half(rows, rule)
    for name, whole in rows.whole.items():
        if not np.isnan(whole).all():
            lines[f"{name}, whole response"] = whole
    for mean, policy in legal_pairs():
        other = Rule(rule.fits, mean, policy, rule.epsilon, rule.weights)
        lines[f"{mean}, {policy}"] = apply_rule(other, rows.values, rows.counts).response
    return lines


def baseline_lines(rows: Labelled) -> dict[str, Floats]:
    """Name -> a score a response that needs neither a model nor a context's meaning."""
    return {f"{BASELINE}shorter response": -rows.words, f"{BASELINE}words in context": rows.overlap}


def sentence_lines(rows: Labelled, rule: Rule) -> dict[str, Floats]:
    """Name -> a score a sentence, labelled or not; NaN where there is none."""
    scores = {ENSEMBLE: ensemble(rows.values, rule.fits, rule.weights)}
    if len(rows.values) > 1:
        scores |= {f"{name}{ALONE}": values for name, values in rows.values.items()}
    return scores | {f"{BASELINE}shorter sentence": -rows.sentence_words, f"{BASELINE}words in context": rows.sentence_overlap}


def differences(scores: Mapping[str, Floats], first: str, good: Bools, groups: Ints, resamples: int) -> list[Difference]:
    """Compare scores with one of them.

    Args:
        scores: Name -> a score a row, NaN where there is none.
        first: The one that the others are compared with.
        good: Whether each row is of the positive class.
        groups: Number of each row's item, from 0; whole items are resampled.
        resamples: Bootstrap resamples; 0 leaves intervals out.

    Returns:
        One a score, in their order, the first left out, and those whose rows are of one class.
    """
    theirs = {name: ~np.isnan(score) & ~np.isnan(scores[first]) for name, score in scores.items() if name != first}
    theirs = {name: there for name, there in theirs.items() if good[there].any() and not good[there].all()}
    spread: dict[str, list[Floats]] = {name: [] for name in theirs}
    for weights in resample_parts(groups, resamples):
        of_first: dict[bytes, Floats] = {}  # most scores are there for the same rows
        for name, there in theirs.items():
            mine = of_both(weights[:, there], good[there])
            key = there.tobytes()
            if key not in of_first:
                of_first[key] = aurocs(scores[first][there], good[there], mine)
            spread[name].append(aurocs(scores[name][there], good[there], mine) - of_first[key])
    found = []
    for name, there in theirs.items():
        mine, right = scores[name][there], good[there]
        value = auroc(mine, right) - auroc(scores[first][there], right)
        low, high = interval(np.concatenate(spread[name])) if resamples else (None, None)
        found.append(Difference(name, int(there.sum()), value, low, high))
    return found


def ask_judge(judge: Judge, rows: Labelled, output: Folder) -> Floats:
    """P(supported) of every response by a served judge; NaN where it gave none.

    Answers stand in OUTPUT/judge/NAME.json under a hash of judge and texts, errors too. What has a value is not asked again.
    They are of the texts alone, so they are written at once, together with those that another command has added.

    Raises:
        OutputError: They can't be written. Nothing is asked then.
    """
    path = f"judge/{judge.name}.json"
    known = _answers(output, path)
    keys = [_key(judge, texts) for texts in rows.texts]
    missing = [i for i, key in enumerate(keys) if known.get(key, {}).get("value") is None]
    expect(len(missing), "steps")
    if missing:
        _write(output, path, known)
    for start in range(0, len(missing), CHUNK):
        part = missing[start : start + CHUNK]
        for i, answer in zip(part, judge_rows(judge, [rows.texts[i] for i in part]), strict=True):
            known[keys[i]] = asdict(answer)
        known = {**_answers(output, path), **known}
        _write(output, path, known)
        advance(len(part), "steps")
    return np.array([np.nan if known[key]["value"] is None else known[key]["value"] for key in keys], dtype=np.float64)


def _answers(output: Folder, path: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(output.read(path) or "{}")
    return found


def _write(output: Folder, path: str, known: dict[str, dict[str, Any]]) -> None:
    try:
        output.itself.write(path, json.dumps(known))
    except OSError as error:
        if is_disk_full(error):
            raise
        raise OutputError(errors.ANSWERS_NOT_WRITABLE, path=output.strip_credentials(path), reason=error) from error


def _key(judge: Judge, texts: tuple[str | None, list[str], str]) -> str:
    dumped = judge.model_dump(mode="json")
    asked = {name: dumped[name] for name in ASKED}
    return hashlib.sha256(json.dumps([asked, *texts]).encode()).hexdigest()
