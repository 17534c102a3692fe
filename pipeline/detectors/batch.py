"""The texts of a batch of rows, as detectors need them, and what they leave as evidence."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.detectors.frequencies import Frequencies, hashed
from ragassay.pipeline.detectors.named import Entity, Key, find_entities, known_keys
from ragassay.pipeline.detectors.ner import names_of
from ragassay.pipeline.detectors.terms import content_terms, has_word_spaces, stop_words
from ragassay.pipeline.rows import Row

LONGEST_PIECE = 600
_PIECE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]]))\s+|\n+")


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


class Batch:
    """The texts of rows, and what several detectors need of them, made once; a passage that many rows share, once for all.

    Texts are all sentences, and behind them all whole responses, whose terms and entities are their sentences'.
    """

    def __init__(self, rows: Sequence[Row], language: str, frequencies: Frequencies) -> None:
        """Bring the texts of rows in order; see `detect.detect`."""
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
            named = zip(self.sentences, names_of(ner, self.sentences), strict=True)
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
