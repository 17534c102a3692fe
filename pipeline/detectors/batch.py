"""Prepare the texts of a batch of rows for the detectors, and hold the evidence that they record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.detectors.find_entities import Entity, EntityKey, collect_known_keys, find_entities
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies, count_hashed_terms
from ragassay.pipeline.detectors.spacy_entities import find_names
from ragassay.pipeline.detectors.terms import has_word_spaces, load_stop_words, stem_content_words
from ragassay.pipeline.rows import Row
from ragassay.pipeline.text.pieces import split_passage


@dataclass
class DetectorEvidence:
    """What detectors record about a sentence in addition to its value.

    Attributes:
        passage: Number of the best passage, from 0; None if no passage was compared or none was similar.
        start: Start of the best piece, as an offset in that passage.
        end: End of that piece.
        missing: (kind, text) of each entity of the sentence that neither context nor question contains.
        notes: Reasons why a detector has no value.
    """

    passage: int | None = None
    start: int | None = None
    end: int | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class TextBatch:
    """Texts of rows, with the term counts and entities that several detectors share.

    The texts are all sentences, followed by all whole responses. The terms and entities of a response are those of its
    sentences. A passage that several rows share is processed once.

    Attributes:
        rows: The rows.
        language: ISO 639-1 code.
        frequencies: Document frequencies.
        sentences: Sentences of all rows.
        sentence_rows: Row of each sentence.
        texts: Sentences, then responses.
        text_rows: Row of each text.
        has_word_spaces: Whether the script of each text's response puts spaces between words.
        passages: Distinct passages.
        passage_indices: For every passage of every row, its index in `passages`.
        passage_rows: Row of each entry of `passage_indices`, ascending.
        first_passage: Per row, position of its first passage in `passage_indices`.
    """

    def __init__(self, rows: Sequence[Row], language: str, frequencies: DocumentFrequencies) -> None:
        """Collect the texts of rows; see `detect.run_detectors`."""
        self.rows = rows
        self.language = language
        self.frequencies = frequencies
        numbers = np.arange(len(rows))
        self.sentences = [sentence for row in rows for sentence in row.sentences]
        self.sentence_rows: Ints = np.repeat(numbers, [len(row.sentences) for row in rows]).astype(np.int64)
        self.texts = [*self.sentences, *(row.response for row in rows)]
        self.text_rows: Ints = np.concatenate([self.sentence_rows, numbers]).astype(np.int64)
        self.has_word_spaces = np.array([has_word_spaces(row.response) for row in rows])[self.text_rows]
        passages = [passage for row in rows for passage in row.context]
        self.passages = list(dict.fromkeys(passages))
        index = {passage: i for i, passage in enumerate(self.passages)}
        self.passage_indices: Ints = np.array([index[passage] for passage in passages], dtype=np.int64)
        self.passage_rows: Ints = np.repeat(numbers, [len(row.context) for row in rows]).astype(np.int64)
        self.first_passage = np.searchsorted(self.passage_rows, numbers)

    def count_terms(self, texts: Sequence[str]) -> Any:
        """Count the terms of texts: sparse matrix (texts, buckets)."""
        return count_hashed_terms(stem_content_words(text, self.language) for text in texts)

    @cached_property
    def sentence_counts(self) -> Any:
        """Term counts of each sentence."""
        return self.count_terms(self.sentences)

    @cached_property
    def text_counts(self) -> Any:
        """Term counts of each text."""
        return self.append_response_sums(self.sentence_counts)

    def append_response_sums(self, sentence_counts: Any) -> Any:
        """Append the sum of the sentence counts of each response."""
        from scipy.sparse import vstack

        response_counts = _make_sum_matrix(self.sentence_rows, len(self.rows)) @ sentence_counts
        return vstack([sentence_counts, response_counts], format="csr")

    @cached_property
    def passage_counts(self) -> Any:
        """Term counts of each distinct passage."""
        return self.count_terms(self.passages)

    @cached_property
    def known_counts(self) -> Any:
        """Term counts of each row's question and context."""
        context_counts = _make_sum_matrix(self.passage_rows, len(self.rows)) @ self.passage_counts[self.passage_indices]
        return (context_counts + self.count_terms([row.question for row in self.rows])).tocsr()

    @cached_property
    def known_keys(self) -> list[set[EntityKey]]:
        """Keys of the names, numbers and dates of each row's question and context."""
        passage_keys = [collect_known_keys([passage]) for passage in self.passages]
        ends = np.cumsum([len(row.context) for row in self.rows])
        cache: dict[tuple[Any, ...], set[EntityKey]] = {}
        row_keys = []
        for row, indices in zip(self.rows, np.split(self.passage_indices, ends[:-1]), strict=True):
            cache_key = (row.question, *indices.tolist())
            if cache_key not in cache:
                cache[cache_key] = collect_known_keys([row.question]).union(*(passage_keys[i] for i in indices))
            row_keys.append(cache[cache_key])
        return row_keys

    @cached_property
    def rule_entities(self) -> list[list[Entity]]:
        """Entities of each sentence, with names found by capital letters."""
        stops = load_stop_words(self.language)
        return [find_entities(text, stop_words=stops) for text in self.sentences]

    def list_entities(self, ner: str | None) -> list[list[Entity]]:
        """List the entities of each text. A response has the distinct entities of its sentences."""
        if ner is None:
            sentence_entities = self.rule_entities
        else:
            texts_and_names = zip(self.sentences, find_names(ner, self.sentences), strict=True)
            sentence_entities = [find_entities(text, names=names) for text, names in texts_and_names]
        response_entities: list[dict[Entity, None]] = [{} for _ in self.rows]
        for row, entities in zip(self.sentence_rows, sentence_entities, strict=True):
            response_entities[row].update(dict.fromkeys(entities))
        return [*sentence_entities, *(list(entities) for entities in response_entities)]

    @cached_property
    def pieces(self) -> tuple[list[str], Ints, Ints]:
        """Pieces of the distinct passages: their texts, indices of their passages, and start offsets in these."""
        texts, passages, starts = [], [], []
        for i, passage in enumerate(self.passages):
            for start, end in split_passage(passage):
                texts.append(passage[start:end])
                passages.append(i)
                starts.append(start)
        return texts, np.array(passages, dtype=np.int64), np.array(starts, dtype=np.int64)


def _make_sum_matrix(groups: Ints, size: int) -> Any:
    """Return a sparse matrix (size, items) that sums the items of each group."""
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(size, len(groups)))
