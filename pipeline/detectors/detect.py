"""Run the detectors over rows: what each says of every sentence and of the whole response, and why where it says nothing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.detectors.config import Detector, Kind
from ragassay.pipeline.detectors.embedding import load_encoder
from ragassay.pipeline.detectors.entities import Entity, EntityKind, Key, find_entities, known_keys
from ragassay.pipeline.detectors.frequencies import Frequencies, hashed
from ragassay.pipeline.detectors.similarity import best_by_terms, best_by_vectors, covered
from ragassay.pipeline.detectors.terms import content_terms, has_word_spaces, stop_words
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.rows import Row
from ragassay.pipeline.spacy_import import import_spacy

NAME_LABELS = frozenset(("PERSON", "PER", "ORG", "GPE", "LOC", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART", "NORP", "LAW", "MISC"))
"""Entity labels of spaCy's pipelines that are names; numbers and dates are found by rules, which bring them to one form."""

LONGEST_PIECE = 600
_PIECE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]]))\s+|\n+")

NO_SPACES = "its script has no spaces between words"
NO_TERM = "no content word"
NO_ENTITY = "nothing named"
NO_MATCH = "nothing to compare with in the context"


@dataclass
class Evidence:
    """What detectors say of a sentence beside its value.

    Attributes:
        passage: Number of the best passage, from 0; None where none was looked for, or found.
        start: Offset of the passage's best piece in it.
        end: Its end.
        missing: (kind, text) of what the sentence names and neither context nor question has.
        notes: Why a detector has no value.
    """

    passage: int | None = None
    start: int | None = None
    end: int | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Detected:
    """What the detectors say of rows.

    Attributes:
        values: Detector -> a value a sentence, of all rows one after the other; NaN where it has none.
        responses: Detector -> a value a row, of its whole response.
        evidence: One a sentence, in the same order.
    """

    values: dict[str, Floats]
    responses: dict[str, Floats]
    evidence: list[Evidence]


def detect(
    rows: Sequence[Row], detectors: Sequence[Detector], language: str, frequencies: Frequencies, threads: int = 1
) -> Detected:
    """Run detectors over rows. What one says does not depend on which others run, nor on other rows.

    Args:
        rows: Rows with at least one sentence and one passage each.
        detectors: Which.
        language: ISO 639-1 code, for stop words and stems.
        frequencies: Document frequencies, for novelty and TF-IDF.
        threads: CPU threads for embeddings.

    Raises:
        ConfigError: A spaCy pipeline is missing, or has no entity recogniser.
        ModelError: An embedding model can't be loaded.
    """
    batch = _Batch(rows, language, frequencies)
    found = Detected({}, {}, [Evidence() for _ in batch.sentences])
    for detector in detectors:
        values, reasons = _values(detector, batch, found.evidence, threads)
        size = len(batch.sentences)
        found.values[detector.name], found.responses[detector.name] = values[:size], values[size:]
        for i in np.flatnonzero(np.isnan(values[:size])):
            found.evidence[i].notes.append(f"{detector.name}: {reasons[i]}")
    return found


class _Batch:
    """The texts of rows, and what several detectors need of them, made once; a passage that many rows share, once for all.

    Texts are all sentences, and behind them all whole responses, whose terms and entities are their sentences'.
    """

    def __init__(self, rows: Sequence[Row], language: str, frequencies: Frequencies) -> None:
        self.rows = rows
        self.language = language
        self.frequencies = frequencies
        numbers = np.arange(len(rows))
        self.sentences = [sentence for row in rows for sentence in row.sentences]
        self.sentence_rows: Ints = np.repeat(numbers, [len(row.sentences) for row in rows]).astype(np.int64)
        self.texts = [*self.sentences, *(row.response for row in rows)]
        self.text_rows: Ints = np.concatenate([self.sentence_rows, numbers]).astype(np.int64)
        self.spaced = np.array([has_word_spaces(row.response) for row in rows])[self.text_rows]
        passages = [passage for row in rows for passage in row.context]
        self.passages = list(dict.fromkeys(passages))
        place = {passage: i for i, passage in enumerate(self.passages)}
        self.passage_places: Ints = np.array([place[passage] for passage in passages], dtype=np.int64)
        self.passage_rows: Ints = np.repeat(numbers, [len(row.context) for row in rows]).astype(np.int64)
        self.first_passage = np.searchsorted(self.passage_rows, numbers)

    def counts(self, texts: Sequence[str]) -> Any:
        """Term counts of texts."""
        return hashed(content_terms(text, self.language) for text in texts)

    @cached_property
    def sentence_counts(self) -> Any:
        """Term counts of each sentence."""
        return self.counts(self.sentences)

    @cached_property
    def text_counts(self) -> Any:
        """Term counts of each text."""
        return self.with_responses(self.sentence_counts)

    def with_responses(self, of_sentences: Any) -> Any:
        """Counts of the sentences, and below them their sums over each response."""
        from scipy.sparse import vstack

        return vstack([of_sentences, _sums(self.sentence_rows, len(self.rows)) @ of_sentences], format="csr")

    @cached_property
    def passage_counts(self) -> Any:
        """Term counts of each different passage."""
        return self.counts(self.passages)

    @cached_property
    def known_counts(self) -> Any:
        """Term counts of each row's question and context."""
        of_contexts = _sums(self.passage_rows, len(self.rows)) @ self.passage_counts[self.passage_places]
        return (of_contexts + self.counts([row.question for row in self.rows])).tocsr()

    @cached_property
    def known_keys(self) -> list[set[Key]]:
        """Names, numbers and dates of each row's question and context."""
        of_passages = [known_keys([passage]) for passage in self.passages]
        ends = np.cumsum([len(row.context) for row in self.rows])
        found: dict[tuple[Any, ...], set[Key]] = {}
        keys = []
        for row, places in zip(self.rows, np.split(self.passage_places, ends[:-1]), strict=True):
            same = (row.question, *places.tolist())
            if same not in found:
                found[same] = known_keys([row.question]).union(*(of_passages[i] for i in places))
            keys.append(found[same])
        return keys

    @cached_property
    def entities_by_rules(self) -> list[list[Entity]]:
        """Entities of each sentence, names by their capitals."""
        stops = stop_words(self.language)
        return [find_entities(text, stop_words=stops) for text in self.sentences]

    def entities(self, ner: str | None) -> list[list[Entity]]:
        """Entities of each text; those of a response are its sentences', each once."""
        if ner is None:
            found = self.entities_by_rules
        else:
            named = zip(self.sentences, _names(ner, self.sentences), strict=True)
            found = [find_entities(text, names=names) for text, names in named]
        whole: list[dict[Entity, None]] = [{} for _ in self.rows]
        for row, entities in zip(self.sentence_rows, found, strict=True):
            whole[row].update(dict.fromkeys(entities))
        return [*found, *(list(entities) for entities in whole)]

    @cached_property
    def pieces(self) -> tuple[list[str], Ints, Ints]:
        """Sentences of the different passages: their texts, places of their passages, and offsets in them."""
        texts, owners, starts = [], [], []
        for place, passage in enumerate(self.passages):
            for start, end in _pieces(passage):
                texts.append(passage[start:end])
                owners.append(place)
                starts.append(start)
        return texts, np.array(owners, dtype=np.int64), np.array(starts, dtype=np.int64)


def _sums(groups: Ints, size: int) -> Any:
    """Sparse matrix (size, members) that sums the members of each group."""
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(size, len(groups)))


def _values(detector: Detector, batch: _Batch, evidence: list[Evidence], threads: int) -> tuple[Floats, list[str]]:
    """A detector's value of each text, and the reason where it has none."""
    match detector.kind:
        case Kind.NOVELTY:
            values, reason = _novelty(batch), NO_TERM
        case Kind.ENTITIES:
            values, reason = _entities(batch, detector.ner, evidence), NO_ENTITY
        case Kind.ATTRIBUTION:
            values, reason = _attribution(batch, detector, evidence, threads), NO_MATCH
        case Kind.HYBRID:
            named, near = _entities(batch, detector.ner, evidence), _attribution(batch, detector, evidence, threads)
            share = np.where(np.isnan(named), 0.0, detector.entity_share)
            values, reason = share * np.nan_to_num(named) + (1 - share) * near, NO_MATCH
    values = np.where(batch.spaced, values, np.nan)
    return values, [reason if spaced else NO_SPACES for spaced in batch.spaced]


def _novelty(batch: _Batch) -> Floats:
    """Weighted share of the content words and numbers that context or question have."""
    numbers: list[list[str]] = []
    known: list[list[str]] = [[] for _ in batch.rows]
    for row, entities in zip(batch.sentence_rows, batch.entities_by_rules, strict=True):
        mine = [e for e in entities if e.kind is EntityKind.NUMBER]
        numbers.append([f"#{min(map(str, e.keys))}" for e in mine])
        known[row] += [term for term, e in zip(numbers[-1], mine, strict=True) if e.is_in(batch.known_keys[row])]
    texts = batch.text_counts + batch.with_responses(hashed(numbers))
    return covered(texts.tocsr(), batch.text_rows, (batch.known_counts + hashed(known)).tocsr(), batch.frequencies)


def _entities(batch: _Batch, ner: str | None, evidence: list[Evidence]) -> Floats:
    """Share of the names, numbers and dates that context or question have; what they lack goes into the evidence."""
    values = np.full(len(batch.texts), np.nan)
    for i, (row, entities) in enumerate(zip(batch.text_rows, batch.entities(ner), strict=True)):
        if entities:
            missing = [e for e in entities if not e.is_in(batch.known_keys[row])]
            values[i] = 1 - len(missing) / len(entities)
            if i < len(evidence) and not evidence[i].missing:
                evidence[i].missing = [(e.kind.value, e.text) for e in missing]
    return values


def _attribution(batch: _Batch, detector: Detector, evidence: list[Evidence], threads: int) -> Floats:
    """Cosine with the best passage, by TF-IDF; or with the best piece of one, by embeddings (a passage may be too long)."""
    texts, owners, starts = batch.pieces
    size = len(batch.sentences)
    if detector.similarity == "tfidf":
        of_passages = batch.passage_counts[batch.passage_places]
        found = best_by_terms(batch.text_counts, batch.text_rows, of_passages, batch.passage_rows, batch.frequencies)
        best_passage = found.part
        places = np.where(best_passage[:size] >= 0, batch.passage_places[best_passage[:size]], -1)
        pieces = best_by_terms(batch.sentence_counts, places, batch.counts(texts), owners, batch.frequencies).part
    else:
        # Every piece once for each row that has its passage.
        sizes = np.bincount(owners, minlength=len(batch.passages))[batch.passage_places]
        first = np.searchsorted(owners, batch.passage_places)
        which = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        of_passage = np.repeat(np.arange(len(batch.passage_places)), sizes)
        rows = batch.passage_rows[of_passage]
        encode = load_encoder(detector.model, threads)
        found = best_by_vectors(batch.texts, batch.text_rows, [texts[k] for k in which], rows, encode)
        best_passage = np.where(found.part >= 0, of_passage[found.part], -1) if len(which) else found.part
        pieces = np.where(found.part >= 0, which[found.part], -1) if len(which) else found.part
    for i, at in enumerate(evidence):
        if best_passage[i] >= 0 and at.passage is None:
            at.passage = int(best_passage[i] - batch.first_passage[batch.text_rows[i]])
            if pieces[i] >= 0:
                at.start = int(starts[pieces[i]])
                at.end = at.start + len(texts[pieces[i]])
    return found.value


def _pieces(passage: str) -> Iterator[tuple[int, int]]:
    """Sentences of a passage, roughly, as [start, end); long ones are cut at white space."""
    start = 0
    for end, following in [*((m.start(), m.end()) for m in _PIECE_END.finditer(passage)), (len(passage), len(passage))]:
        while end - start > LONGEST_PIECE:
            cut = passage.rfind(" ", start + 1, start + LONGEST_PIECE)
            cut = cut if cut > start else start + LONGEST_PIECE
            yield start, cut
            start = cut
        if passage[start:end].strip():
            yield start, end
        start = following


def _names(ner: str, texts: Sequence[str]) -> list[list[str]]:
    return [[e.text for e in doc.ents if e.label_ in NAME_LABELS] for doc in load_ner(ner).pipe(texts, batch_size=256)]


@lru_cache(maxsize=2)
def load_ner(name: str) -> Any:
    """An installed spaCy pipeline with an entity recogniser; what it does not need for names is left out.

    Raises:
        ConfigError: It is not installed, or has none.
    """
    spacy = import_spacy()
    try:
        nlp = spacy.load(name, exclude=["parser", "senter", "lemmatizer"])
    except OSError as error:
        raise ConfigError(
            f"detector: spaCy pipeline {name!r} is not installed: install it, or leave `ner` out to find names by rules"
        ) from error
    if not {"ner", "entity_ruler", "span_ruler"} & set(nlp.pipe_names):
        raise ConfigError(
            f"detector: spaCy pipeline {name!r} has no entity recogniser (it has {', '.join(nlp.pipe_names) or 'nothing'}): "
            "name one that has, or leave `ner` out to find names by rules"
        )
    return nlp
