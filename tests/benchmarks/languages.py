"""Measure language detection: `python -m tests.benchmarks.languages DATA`, where DATA is the folder of labeled English sets.

Prints Markdown tables: by set, English rows detected as another language; by language, the detected language of answers about
English passages (written answers, and spaCy's example sentences); and the time per row.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ragassay.pipeline.text.language_detection import detect_row_language
from tests.corpus.answers_by_language import BY_LANGUAGE, KINDS, PASSAGES

HANDBOOK = Path(__file__).parents[2] / "jobs" / "data" / "handbook"
COLUMNS = ["question", "context", "response"]
MEASURED = frozenset({"en"})
CONFUSED = {"no": {"no", "da"}, "id": {"id", "ms"}, "hr": {"hr", "sr", "bs"}}
"""Languages that are mistaken for each other; no figures are measured for them."""


def main(data: Path) -> None:
    """Print the tables."""
    print("| set | rows | taken for another language | share | by rows without a question | languages |")
    print("| --- | --- | --- | --- | --- | --- |")
    seconds, total = 0.0, 0
    for name, rows in read_english_sets(data):
        started = time.perf_counter()
        detected = [detect_row_language(row["question"], row["context"], row["response"], MEASURED) for row in rows]
        seconds, total = seconds + time.perf_counter() - started, total + len(rows)
        codes = Counter(code for code in detected if code not in (None, "en"))
        without_question = sum(
            code not in (None, "en") for code in (detect_row_language(None, None, r["response"], MEASURED) for r in rows)
        )
        common = ", ".join(f"{code} {count}" for code, count in codes.most_common(5))
        share = f"{codes.total() / len(rows):.2%}"
        print(f"| {name} | {len(rows):,} | {codes.total()} | {share} | {without_question / len(rows):.2%} | {common} |")
    print(f"\n{total:,} rows, {1e6 * seconds / total:.0f} microseconds per row\n")
    print("| language | " + " | ".join(KINDS) + " | sentence without a question | spaCy's examples: another language | right |")
    print("| --- |" + " --- |" * (len(KINDS) + 3))
    for code, answers in BY_LANGUAGE.items():
        detected_answers = [detect_row_language(question, PASSAGES, answer, MEASURED) for question, answer in answers]
        bare_sentence = detect_row_language(None, PASSAGES, answers[1][1], MEASURED)
        examples = [detect_row_language(None, PASSAGES, text, MEASURED) for text in read_spacy_examples(code)]
        right = sum(detected in CONFUSED.get(code, {code}) for detected in examples)
        other = sum(detected not in (None, "en") for detected in examples)
        shown = f"{other} of {len(examples)} | {right}" if examples else "– | –"
        print(f"| {code} | {' | '.join(map(str, detected_answers))} | {bare_sentence} | {shown} |")


def read_english_sets(data: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield name and rows (question, context, response) of each English set; sets of statements have one row per statement."""
    for path in sorted([*data.glob("*.parquet"), *(data / "written").glob("*.parquet")]):
        yield path.stem, pq.read_table(path, columns=COLUMNS).to_pylist()
    for folder in ("demo", "logs"):
        files = sorted((HANDBOOK / folder).glob("*/*.parquet"))
        yield f"handbook {folder}", [row for file in files for row in pq.ParquetFile(file).read(columns=COLUMNS).to_pylist()]


def read_spacy_examples(code: str) -> list[str]:
    """Read spaCy's example sentences of a language; empty if it has none."""
    try:
        sentences: list[str] = import_module(f"spacy.lang.{'nb' if code == 'no' else code}.examples").sentences
    except ImportError:
        return []
    return sentences


if __name__ == "__main__":
    main(Path(sys.argv[1]))
