"""Put together what the bundled verifiers are trained on: `python -m jobs.tune.mix DATA FOLDER [ROUND]`.

DATA is a folder of labelled sets: fever, squad_v2, halueval_qa, halueval_summarization and begin_dev as Parquet with question,
context, response, label. Two mixes come out, FOLDER/facts.parquet and FOLDER/sources.parquet: a row a statement, as
`ragassay tune` reads them. `facts` is about what a claim says wrongly (changed values and names); `sources` about what it adds
(dialogue, summaries, sentences that the context lacks). Both have FEVER and the handbook's training part, and each another
half of SQuAD and HaluEval QA. A second round (ROUND 2) takes the other half and other summaries, and makes other statements.
"""

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from jobs.handbook.build import LOGS
from pipeline.split import load_splitter, split
from pipeline.tune.corrupt import drop_sentences, synthetic

Row = dict[str, Any]

CONTEXT_CHARS = 1200
"""Longer contexts are cut to the sentences nearest to what is said of them: training time grows faster than length."""

HELD_OUT = 1 / 3
NO_ANSWER = ("The passages do not answer this question.", "Unable to answer based on the given passages.",
             "The context does not say.")  # fmt: skip


def held_out(context: Sequence[str]) -> bool:
    """Whether a context of FEVER is kept for measuring: a third of them, by a hash."""
    return int(hashlib.sha256("\n".join(context).encode()).hexdigest()[:8], 16) < HELD_OUT * 2**32


def build(data: Path, name: str, number: int = 1) -> pl.DataFrame:
    """One of the mixes, facts or sources, of a round."""
    seed = (0 if name == "facts" else 1) + number - 1
    half = seed % 2
    make = _Maker(Random(seed if number == 1 else f"{name} {number}"), drop=0.35 if name == "facts" else 0.8)
    rows = [*make.handbook()]
    rows += make.statements(_read(data, "squad_v2", half=half), count=3, answers=True)
    rows += make.statements(_read(data, "halueval_qa", half=half), count=3)
    fever = _read(data, "fever")
    rows += make.statements(fever.filter([not held_out(c) for c in fever["context"].to_list()]), count=2)
    if name == "sources":
        rows += make.statements(_read(data, "begin_dev").filter(pl.col("label") != "generic"), count=2)
        rows += make.statements(_read(data, "halueval_summarization").slice(900 * (number - 1), 900), count=3)
    return pl.DataFrame(rows, schema_overrides={"context": pl.List(pl.String)})


class _Maker:
    """Makes rows; `drop` is how often a sentence is taken out of a context."""

    def __init__(self, rng: Random, drop: float) -> None:
        self.rng, self.drop = rng, drop
        self.nlp = load_splitter("sentencizer", "en")

    def statements(self, frame: pl.DataFrame, count: int, *, answers: bool = False) -> Iterator[Row]:
        """The labelled rows of a set, a context at a time, with synthetic statements beside them.

        Args:
            frame: The set.
            count: Synthetic statements of each label and context.
            answers: Whether a wrong response is the sign of a question without an answer in the context.
        """
        for _, part in frame.group_by("context", maintain_order=True):
            rows = part.to_dicts()
            said = " ".join(f"{row['question'] or ''} {row['response']}" for row in rows)
            context, dropped = self._shorten(rows[0]["context"], said)
            for row in rows:
                yield {**_row(row), "context": context}
                if answers and self.rng.random() < 0.15:
                    label = "wrong" if row["label"] == "correct" else "correct"
                    yield {**_row(row), "context": context, "response": self.rng.choice(NO_ANSWER), "label": label}
            yield from self._synthetic(context, dropped, [row["question"] for row in rows], count)

    def handbook(self) -> Iterator[Row]:
        """Sentences of the handbook's training part: in their own context, and with a passage of another item beside it."""
        frame = pl.read_parquet(LOGS / "**/*.parquet").filter(pl.col("split") == "train").sort("row_id")
        passages = frame["context"].explode().unique(maintain_order=True).to_list()
        for _, part in frame.group_by("item", maintain_order=True):
            rows = part.to_dicts()
            own = rows[0]["context"]
            other = self.rng.choice([p for p in passages if p not in own])
            for context in (own, self.rng.sample([*own, other], len(own) + 1)):
                for row in rows:
                    for label in row["sentence_labels"]:
                        text = row["response"][label["start"] : label["end"]]
                        yield {
                            **_row(row),
                            "context": context,
                            "response": text,
                            "label": "correct" if label["supported"] else "wrong",
                        }
                yield from self._synthetic(context, [], [row["question"] for row in rows], 4)

    def _shorten(self, passages: Sequence[str], said: str) -> tuple[list[str], list[str]]:
        """A context of at most CONTEXT_CHARS with, mostly, a sentence dropped that the labels do not speak of."""
        words = _content(said)
        kept: list[tuple[str, list[tuple[int, int]]]] = []
        spans = split(self.nlp, list(passages))
        if sum(map(len, passages)) > CONTEXT_CHARS:
            ranked = sorted(
                ((len(words & _content(text[a:b])) / (1 + len(_content(text[a:b])) ** 0.5), i, a, b)
                 for i, text in enumerate(passages) for a, b in spans[i]), reverse=True,
            )  # fmt: skip
            room, chosen = CONTEXT_CHARS, []
            for _, i, a, b in ranked:
                if b - a <= room:
                    chosen.append((i, a, b))
                    room -= b - a
            texts = [" ".join(passages[i][a:b] for j, a, b in sorted(chosen) if j == i) for i in range(len(passages))]
            texts = [text for text in texts if text]
            kept = list(zip(texts, split(self.nlp, texts), strict=True))
        else:
            kept = list(zip(passages, spans, strict=True))
        if self.rng.random() >= self.drop:
            return [text for text, _ in kept], []
        return drop_sentences(kept, list(words), self.rng)

    def _synthetic(self, context: list[str], dropped: list[str], questions: list[str], count: int) -> Iterator[Row]:
        sentences = [text[a:b] for text, spans in zip(context, split(self.nlp, context), strict=True) for a, b in spans]
        for text, supported in synthetic(sentences, dropped, "\n".join(context), count, self.rng):
            yield {
                "question": self.rng.choice(questions) or "",
                "context": context,
                "response": text,
                "label": "correct" if supported else "wrong",
            }


def _row(row: Row) -> Row:
    return {name: row[name] or "" for name in ("question", "response", "label")}


def _content(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3 or word.isdigit()}


def _read(data: Path, name: str, half: int | None = None) -> pl.DataFrame:
    frame = pl.read_parquet(data / f"{name}.parquet")
    if half is None:
        return frame
    contexts = frame["context"].to_list()
    return frame.filter([int(hashlib.sha256("\n".join(c).encode()).hexdigest(), 16) % 2 == half for c in contexts])


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for mix in ("facts", "sources"):
        build(Path(sys.argv[1]), mix, rounds).write_parquet(folder / f"{mix}.parquet")
