"""Measure the speed of the detectors on all cores, without Ray, from texts in memory.

    python -m tests.benchmarks.detectors LOGS [--rows N] [--ner PIPELINE] [--embedding]

LOGS is a Parquet file or a folder of logs with question, context and response. Rates are also given as ratios to the first
line, because machines differ. Rows repeat if there are fewer than N; contexts repeat as often as in LOGS.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.detect import run_detectors
from ragassay.pipeline.detectors.entities import Entities
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies, count_frequencies
from ragassay.pipeline.detectors.novelty import Novelty
from ragassay.pipeline.detectors.terms import stem_content_words
from ragassay.pipeline.rows import Row
from ragassay.pipeline.text.split import load_splitter, split_sentences

BLOCK = 256
_state: dict[str, Any] = {}


def keep_frequencies(frequencies: DocumentFrequencies) -> None:
    """Keep the frequencies in a worker."""
    _state["frequencies"] = frequencies


def detect_block(task: tuple[list[Row], list[Detector]]) -> int:
    """Run detectors on one block and return its number of rows."""
    rows, detectors = task
    run_detectors(rows, detectors, "en", _state["frequencies"], 1)
    return len(rows)


def read_rows(path: str) -> list[Row]:
    """Read rows and split their sentences."""
    frame = pl.read_parquet(path if path.endswith(".parquet") else f"{path}/**/*.parquet", hive_partitioning=False)
    rows = frame.select("question", "context", "response").to_dicts()
    nlp = load_splitter("sentencizer", "en")
    spans = split_sentences(nlp, [row["response"] for row in rows])
    return [
        Row(row["question"] or "", [p for p in row["context"] if p], row["response"], [row["response"][a:b] for a, b in places])
        for row, places in zip(rows, spans, strict=True)
        if places and any(row["context"])
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--ner")
    parser.add_argument("--embedding", action="store_true")
    options = parser.parse_args()
    log_rows = read_rows(options.logs)
    rows = (log_rows * (1 + options.rows // len(log_rows)))[: options.rows]
    frequencies = count_frequencies(stem_content_words(p, "en") for p in sorted({p for row in log_rows for p in row.context}))
    entities, novelty, attribution = Entities(name="entities"), Novelty(name="novelty"), Attribution(name="attribution")
    sets: list[tuple[str, list[Detector], int]] = [
        ("entities (rules), novelty and TF-IDF", [entities, novelty, attribution], len(rows)),
        ("entities (rules)", [entities], len(rows)),
        ("novelty", [novelty], len(rows)),
        ("attribution, TF-IDF", [attribution], len(rows)),
    ]
    if options.ner:
        sets.append((f"entities ({options.ner})", [Entities(name="e", ner=options.ner)], len(rows) // 8))
    if options.embedding:
        embedding = Attribution(name="a", similarity="embedding")
        sets.append(("attribution, embeddings", [embedding], len(rows) // 32))
    cores = os.cpu_count() or 1
    table = Table("detectors", "rows", "rows/s", "ratio", "seconds per thousand", title=f"{options.logs}, {cores} cores")
    first = 0.0
    with ProcessPoolExecutor(cores, initializer=keep_frequencies, initargs=(frequencies,)) as pool:
        for name, detectors, size in sets:
            blocks = [(rows[i : i + BLOCK], detectors) for i in range(0, size, BLOCK)]
            list(pool.map(detect_block, [(rows[:8], detectors)] * cores))  # warm-up: models, stems
            started = time.perf_counter()
            row_count = sum(pool.map(detect_block, blocks))
            rate = row_count / (time.perf_counter() - started)
            first = first or rate
            table.add_row(name, f"{row_count:,}", f"{rate:,.0f}", f"{rate / first:.3f}", f"{1000 / rate:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
