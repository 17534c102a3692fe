"""`estimate`: the share of hallucinated responses in all rows, from the verdicts of all and the labels of a few."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.label_table import DRAWN, ITEM, KEY, label_of_rows, load_labels, name_item, weak_annotators
from ragassay.jobs.evaluation.labels import Label, LabelSource
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.output.partitions import natural
from ragassay.jobs.output.scored_dataset import Rows, ScoredDataset, as_text, open_scored
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.prediction_powered import (
    LEVEL,
    Sample,
    Share,
    classical,
    labels_to_halve,
    powered,
    share_of,
)
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.schemas.columns import HALLUCINATED, Status
from ragassay.schemas.estimate import Estimate, RateRecord, ShareRecord

ESTIMATE = "estimate.json"
PARTITION = ""
"""Among the columns: the partition, whatever its keys."""

MOST_VALUES = 1000
"""Values of a column that are looked at one by one."""

FEW = 20
UNDECIDED = 0.1
"""Share of what was looked at that may be left without a label unsaid."""

ODD = 1e-4
"""A random sample differs so much from all rows with at most this probability."""

OFF = 0.1
"""Share of the rows by which labels may stand for more or fewer unsaid."""

CHANCE = 3.0
"""Standard deviations of what a part of a sample stands for; a whole one has none."""


@dataclass(frozen=True)
class SpokenOf:
    """The scored rows that labels speak of, with a label or without, where they say with what probability each was drawn.

    Attributes:
        weights: How many rows each stands for: 1 / inclusion probability.
        bare: Partitions in which there is none.
        partitions: Partitions.
        domain: Whether the labels speak of rows that `--where` leaves out, so that these are a part of a sample.
    """

    weights: Floats
    bare: int
    partitions: int
    domain: bool


@dataclass
class _Rows:
    """The scored rows, in the order of the output; `said` are numbers and labels of those that have one, `silent`
    numbers of those that the labels speak of without one."""

    flagged: list[Bools] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    stands: list[Floats] = field(default_factory=list)
    shares: Floats = field(default_factory=lambda: np.ones(0))
    parts: dict[str, list[Ints]] = field(default_factory=dict)
    values: dict[str, dict[str, int]] = field(default_factory=dict)
    said: dict[int, Label] = field(default_factory=dict)
    silent: list[int] = field(default_factory=list)
    keys: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    elsewhere: int = 0
    unscored: int = 0
    labelled_unscored: int = 0
    spoken_elsewhere: int = 0


def estimate(output: Folder, source: LabelSource, slices: Sequence[str] = ()) -> Estimate:
    """Estimate the share of hallucinated responses among all scored rows, and write `estimate.json`.

    A response that is partly wrong counts as hallucinated.

    Args:
        output: A finalised output folder.
        source: Where the labels are.
        slices: Columns whose values are looked at one by one.

    Raises:
        InputError: There is no label, no such column, or the labels' file can't be used.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    labels = load_labels(scored, source, sentences=False)
    rows = _read(output, scored, source, labels, slices)
    if not rows.rows:
        raise OutputError(errors.NO_ROW, output=output.uri, left_out=rows.elsewhere)
    if not rows.said:
        raise InputError(errors.NO_LABEL, labels=source.file or source.column, rows=rows.rows, silent=len(rows.silent))
    sample, strata, weighted = _sample(source, rows, labels)
    stands = np.concatenate(rows.stands)
    of_all = _Rates(np.concatenate(rows.flagged), np.concatenate(rows.scores), sample, stands if (stands > 1).any() else None)
    everything = np.ones(rows.rows, dtype=bool)
    overall = of_all.rate("all", everything)
    codes_of = {column: np.concatenate(codes) for column, codes in rows.parts.items()}
    by_part = {column: of_all.rates(codes, rows.values[column]) for column, codes in codes_of.items()}
    spoken = _spoken_of(rows, sample, codes_of[PARTITION], labels) if weighted else None
    nights = by_part.pop(PARTITION)
    found = Estimate(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        source=strip_credentials(source.file) if source.file else source.column,
        level=LEVEL,
        where=dict(source.where),
        excluded=rows.elsewhere,
        unscored=rows.unscored,
        weighted=weighted,
        strata=strata,
        undecided=len(rows.silent),
        labeled_unscored=rows.labelled_unscored,
        unmatched=labels.filter(pl.col("row_key").is_null()).n_unique(KEY),
        repeated=int((labels.unique([*ITEM, "times"])["times"] - 1).sum()),
        overall=overall,
        partitions=nights if len(nights) > 1 else [],
        slices=by_part,
        notes=list(estimate_notes(overall, *of_all.labelled(), strata, len(rows.silent), spoken, weak_annotators(labels))),
    )
    output.write(ESTIMATE, found.to_json())
    return found


def _read(output: Folder, scored: ScoredDataset, source: LabelSource, labels: pl.DataFrame, slices: Sequence[str]) -> _Rows:
    """Verdicts of all scored rows, and the labels of some."""
    rows = _Rows(parts={name: [] for name in (PARTITION, *slices)}, values={name: {} for name in (PARTITION, *slices)})
    rows.shares = np.array(read_manifest(output).scored_shares())
    wanted = ["row_key", "status", "score", "verdict", *slices, *source.where]
    scored.require_columns(wanted)
    spoken, label_of = set(labels["row_key"].drop_nulls()), label_of_rows(labels)
    for part in scored.batches(wanted):
        _gather(rows, part, source, spoken, label_of)
    return rows


def _gather(rows: _Rows, part: Rows, source: LabelSource, spoken: Set[int], label_of: Mapping[int, Label]) -> None:
    table, looked_at = part.table, part.matches(source.where)
    ok = pc.and_(pc.equal(table["status"], Status.OK.value), pc.is_valid(table["score"])).to_numpy().astype(bool)
    scored = looked_at & ok
    rows.elsewhere += int((~looked_at).sum())
    rows.unscored += int((looked_at & ~ok).sum())
    number = rows.rows + np.cumsum(scored) - 1  # of a scored row among all
    for i, key in enumerate(table["row_key"].to_pylist()):
        if key not in spoken:
            continue
        if not looked_at[i]:
            rows.spoken_elsewhere += 1
        elif not scored[i]:
            rows.labelled_unscored += 1
        else:
            rows.keys[int(number[i])] = key
            if key in label_of:
                rows.said[int(number[i])] = label_of[key]
            else:
                rows.silent.append(int(number[i]))
    keep = pa.array(np.flatnonzero(scored))
    rows.rows += len(keep)
    rows.flagged.append(pc.equal(table["verdict"].take(keep), HALLUCINATED).to_numpy().astype(bool))
    rows.scores.append(table["score"].take(keep).to_numpy())
    rows.stands.append(_stands(table["row_key"].take(keep), rows.shares))
    for name, codes in rows.parts.items():
        known = rows.values[name]
        values = (
            [part.file.partition_name] * len(keep) if name == PARTITION else map(as_text, table[name].take(keep).to_pylist())
        )
        codes.append(np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64))
        if name != PARTITION and len(known) > MOST_VALUES:
            raise InputError(errors.TOO_MANY_SLICES, column=name, most=MOST_VALUES)


def _stands(keys: pa.ChunkedArray, shares: Floats) -> Floats:
    """How many rows each scored one stands for: 1 / share of its file's rows that were scored."""
    if not len(shares):
        return np.ones(len(keys))
    numbers = pc.shift_right(keys, 32).to_numpy()
    return 1 / np.where(numbers < len(shares), shares[np.minimum(numbers, len(shares) - 1)], 1.0)


def _sample(source: LabelSource, rows: _Rows, labels: pl.DataFrame) -> tuple[Sample, list[str], bool]:
    """The labelled rows with their weights and strata; names of the strata; whether the weights were said.

    Raises:
        InputError: Lines of a row differ in these, or some have no weight.
    """
    numbers = sorted(rows.said)
    keys = [rows.keys[number] for number in numbers]
    said = labels.filter(pl.col("row_key").is_in(keys)).unique(["row_key", *DRAWN], keep="first", maintain_order=True)
    differ = said.filter(pl.len().over("row_key") > 1)
    if len(differ):
        row = name_item({**differ.row(0, named=True), "start": None})
        raise InputError(errors.OF_SENTENCES, file=source.file, row=row)
    drawn_of = {key: (stratum, probability) for key, stratum, probability in said.select("row_key", *DRAWN).iter_rows()}
    drawn = [drawn_of[key] for key in keys]
    unsaid = sum(probability is None for _, probability in drawn)
    if 0 < unsaid < len(drawn):
        raise InputError(errors.SOME_PROBABILITIES, file=source.file, missing=unsaid, rows=len(drawn))
    weighted = not unsaid
    names = sorted({stratum or "" for stratum, _ in drawn})
    number_of = {name: number for number, name in enumerate(names)} if weighted else dict.fromkeys(names, 0)
    sample = Sample(
        rows=np.array(numbers, dtype=np.int64),
        wrong=np.array([rows.said[number] is not Label.CORRECT for number in numbers]),
        weights=np.array([1 / (probability or 1) for _, probability in drawn]),
        strata=np.array([number_of[stratum or ""] for stratum, _ in drawn], dtype=np.int64),
    )
    return sample, [name for name in names if name], weighted


@dataclass(frozen=True)
class _Rates:
    """The estimates for parts of the rows.

    Attributes:
        flagged: Whether each scored row is flagged.
        scores: Score of each.
        sample: The labelled ones.
        stands: How many rows each stands for; None where all rows were scored.
    """

    flagged: Bools
    scores: Floats
    sample: Sample
    stands: Floats | None

    def labelled(self) -> tuple[Sample, Bools]:
        """The labelled rows, with how many of all rows each stands for, and whether they are flagged."""
        rows = self.sample.rows
        weights = self.sample.weights * (1.0 if self.stands is None else self.stands[rows])
        return replace(self.sample, weights=weights), self.flagged[rows]

    def rate(self, part: str, mine: Bools) -> RateRecord:
        """The estimates for some of the rows."""
        sample, stands = self.sample, None if self.stands is None else self.stands[mine]
        inside = mine[sample.rows]
        number = np.cumsum(mine) - 1
        here = Sample(number[sample.rows[inside]], sample.wrong[inside], sample.weights[inside], sample.strata[inside])
        labels, size = len(here.rows), int(mine.sum())
        flagged = self.flagged[mine]
        found = powered(flagged, self.scores[mine], here, stands) if labels else None
        return RateRecord(
            subset=part,
            rows=size,
            labels=labels,
            hallucinated=int(here.wrong.sum()),
            flagged=float(np.average(flagged, weights=stands)),
            labeled_flagged=float(flagged[here.rows].mean()) if labels else None,
            powered=_record(share_of(found)) if found else None,
            classical=_record(share_of(classical(size, here, stands))) if labels else None,
            more_labels=labels_to_halve(found, labels, size) if found else None,
            population=None if stands is None else float(stands.sum()),
        )

    def rates(self, codes: Ints, values: Mapping[str, int]) -> list[RateRecord]:
        """The estimates for each value of a column; one without a label has counts alone."""
        every = np.ones(len(codes)) if self.stands is None else self.stands
        weighted = (None, every, self.flagged * every)
        rows, all_rows, flags = (np.bincount(codes, weights, len(values)) for weights in weighted)
        labelled = set(codes[self.sample.rows].tolist())
        return [
            self.rate(value, codes == code)
            if code in labelled
            else RateRecord(
                value, int(rows[code]), 0, 0, float(flags[code] / all_rows[code]), None, None, None, None,
                None if self.stands is None else float(all_rows[code]),
            )
            for value, code in sorted(values.items(), key=lambda pair: natural(pair[0]))
        ]  # fmt: skip


def _spoken_of(rows: _Rows, sample: Sample, parts: Ints, labels: pl.DataFrame) -> SpokenOf:
    """What the sample stands for, those without a label among it."""
    keys = [rows.keys[number] for number in rows.silent]
    silent = labels.filter(pl.col("row_key").is_in(keys)).unique("row_key", keep="first", maintain_order=True)
    numbers = np.concatenate([sample.rows, np.array(rows.silent, dtype=np.int64)])
    return SpokenOf(
        weights=np.concatenate([sample.weights, 1 / silent["inclusion_probability"].drop_nulls().to_numpy()]),
        bare=len(np.setdiff1d(parts, parts[numbers])),
        partitions=len(np.unique(parts)),
        domain=rows.spoken_elsewhere > 0,
    )


def _record(found: Share) -> ShareRecord:
    return ShareRecord(found.value, found.low, found.high)


def estimate_notes(
    overall: RateRecord,
    sample: Sample,
    flagged: Bools,
    strata: Sequence[str],
    undecided: int,
    spoken: SpokenOf | None,
    weak: str | None,
) -> Iterator[str]:
    """Notes of an estimate, a sentence each without its full stop.

    Args:
        overall: The estimate of all rows.
        sample: The labelled rows.
        flagged: Whether each of them is flagged.
        strata: Names of the strata.
        undecided: Rows that the labels speak of without giving the response a label.
        spoken: What the labels stand for; None where they have no inclusion probabilities.
        weak: Which model said it, where no person did.
    """
    if weak:
        yield f"the labels are opinions of {weak}: the estimate is of what it would say, not of what is true"
    if spoken is None:
        named = "although they name strata, " if strata else ""
        yield (
            f"the labels have no inclusion_probability: {named}they are taken for a simple random sample of all scored "
            "responses. If people chose what to look at, the estimate is wrong, and the interval does not know it"
        )
    else:
        yield from _stands_for(spoken, overall)
    yield from _unlike(overall, sample, flagged, weighted=spoken is not None)
    for verdict, share in (("flagged", overall.flagged), ("passed", 1 - overall.flagged)):
        labelled = overall.labeled_flagged if verdict == "flagged" else 1 - (overall.labeled_flagged or 0)
        if share and not labelled:
            yield f"none of the {verdict} responses ({share:.1%} of all) has a label: the next ones should be of these"
    if len(sample.rows) < FEW:
        yield f"{len(sample.rows)} labels tell little, whatever the verdicts: the interval is honest, and wide"
    if undecided > UNDECIDED * (len(sample.rows) + undecided):
        yield (
            f"{undecided} responses were looked at without getting a label (unsure, or some of their sentences only): the "
            "estimate takes them to be like the others, which those that are hard to judge may not be"
        )


def _stands_for(spoken: SpokenOf, overall: RateRecord) -> Iterator[str]:
    """Whether the labels are of these rows: a whole sample stands for as many as there are, by its probabilities."""
    found = float(spoken.weights.sum())
    by_chance = CHANCE * float(np.sqrt((spoken.weights * (spoken.weights - 1)).sum())) if spoken.domain else 0.0
    if abs(found - overall.rows) <= OFF * overall.rows + by_chance:
        return
    stand = f"by their inclusion probabilities the labels stand for about {found:,.0f} of {overall.rows:,} scored responses"
    if found > overall.rows:
        yield (
            f"{stand}: they were drawn from more than these, or are of several pages. The estimate is right only if they are a "
            "random sample of these all the same; name the same --where as `review` had, or give the labels of one page"
        )
    elif spoken.bare:
        yield (
            f"{stand}, and {spoken.bare:,} of {spoken.partitions:,} partitions have none: what was drawn before these came, or "
            "with --where, tells nothing of them. Name the same --where here, label a page that `review` draws today, or more "
            "of the page if it is only begun"
        )
    else:
        drawn = round(len(spoken.weights) * overall.rows / found)
        yield (
            f"{stand}: {overall.labels:,} of about {drawn:,} drawn responses have a label, if they were drawn from all. Who "
            "stops early is no harm but a slightly too short interval; who skips the hard ones is: say `u` of these. If "
            "`review` had a --where, name the same here"
        )


def _unlike(overall: RateRecord, sample: Sample, flagged: Bools, *, weighted: bool) -> Iterator[str]:
    """Whether the verdicts of the labelled rows are like those of all; weights count as so many equal ones (Kish)."""
    from scipy.stats import binom

    weights = sample.weights
    count = round(float(weights.sum() ** 2 / (weights**2).sum()))
    share = float(np.average(flagged, weights=weights))
    seen = round(share * count)
    if min(binom.cdf(seen, count, overall.flagged), binom.sf(seen - 1, count, overall.flagged)) >= ODD:
        return
    if weighted:
        yield (
            f"weighted by their inclusion probabilities {share:.1%} of the labelled responses are flagged, of all "
            f"{overall.flagged:.1%}: chance alone draws no such sample. They were drawn otherwise than they say, from other "
            "responses than these, or labelled by choice"
        )
    else:
        yield (
            f"{seen} of {overall.labels} labelled responses are flagged, of all {overall.flagged:.1%}: chance alone draws "
            "no such sample. The estimate is right only if it was chosen by the verdict and nothing else"
        )
