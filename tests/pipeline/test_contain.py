"""Whatever raises, wherever: no row is lost or moved, and no other row's values change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.scoring.frequencies import count_context_frequencies
from ragassay.pipeline.contain import contain, describe_fault
from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.entities import Entities
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies
from ragassay.pipeline.detectors.novelty import Novelty
from ragassay.pipeline.errors import ConfigError, ModelError
from ragassay.pipeline.slm import score as score_module
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.detect import DetectStage
from ragassay.pipeline.stages.slm import SlmStage
from ragassay.pipeline.stages.split import SplitStage
from ragassay.pipeline.stages.stage import run_contained
from ragassay.schemas.columns import Status, logs_schema
from tests.pipeline.slm.test_score import CountingEngine
from tests.raises import EXAMPLE, raises

MARK = "SECRET"
"""Occurs in the texts for which a part of RAGAssay is made to raise."""

LONG = f"Call {MARK} at 9. " + "Leave is 30 days. " * 60
"""A passage that is longer than the window."""

DETECTORS: list[Detector] = [Entities(name="entities"), Attribution(name="attribution"), Novelty(name="novelty")]
SLM = Slm(name="m", system="s")

sentences = st.sampled_from(
    ["The desk opens at 9 a.m.", "Ms. Oduya signs it.", "Leave is 30 days.", "It is so.", "", " \n", f"Ask {MARK} 7 times."]
)
rows_of_logs = st.lists(
    st.fixed_dictionaries(
        {
            "question": st.sampled_from(["When?", "Who signs?", None]),
            "context": st.lists(sentences | st.just(LONG), max_size=3) | st.none(),
            "response": st.lists(sentences, max_size=3).map(" ".join) | st.none(),
        }
    ),
    max_size=9,
)


class Raised(Exception):
    """An unexpected exception."""


def raising(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, changed to raise if one of its arguments contains MARK."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if MARK in repr(args):
            raise Raised(f"log text: {args!r}")
        return function(*args, **kwargs)

    return wrapped


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    known = {"status": Status.OK.value, "error": None}
    data = [{"row_key": i, "row_id": f"r{i}", **row, **known} for i, row in enumerate(rows)]
    return pa.Table.from_pylist(data, schema=logs_schema(pa.schema([])))


def split(table: pa.Table) -> pa.Table:
    return run_contained(SplitStage(("sentencizer", "en"), needs_question=False), table)


@pytest.fixture(scope="module")
def scorer(tokenizer: Any) -> SlmStage:
    with patch(
        "ragassay.pipeline.slm.config.Slm.load_engine", lambda slm, threads: CountingEngine(tokenizer, max_model_len=300)
    ):
        stage = SlmStage(SLM, ("sentencizer", "en"), threads=1)
        stage.setup()
        return stage


@pytest.fixture(scope="module")
def frequencies() -> DocumentFrequencies:
    return count_context_frequencies([["The desk opens at nine.", "Leave is 25 days."]], "en")


def detect(table: pa.Table, frequencies: DocumentFrequencies) -> pa.Table:
    return run_contained(DetectStage(DETECTORS, "en", lambda: frequencies, 1), table)


FAULTS = {
    "splitting": "ragassay.pipeline.stages.split.split_sentences",
    "prompts": "ragassay.pipeline.slm.prompt.PromptBuilder._cut_row",
    "windows": "ragassay.pipeline.slm.row_prompts.encode_windows",
    "digests": "ragassay.pipeline.slm.score.hash_row",
    "entities": "ragassay.pipeline.detectors.batch.find_entities",
    "known keys": "ragassay.pipeline.detectors.batch.collect_known_keys",
    "attribution": "ragassay.pipeline.detectors.batch.split_passage",
    "novelty": "ragassay.pipeline.detectors.batch.stem_content_words",
}


@contextmanager
def fault(part: str) -> Iterator[None]:
    module, _, name = FAULTS[part].rpartition(".")
    import importlib

    try:
        owner: Any = importlib.import_module(module)
    except ModuleNotFoundError:
        holder, _, name_of_class = module.rpartition(".")
        owner = getattr(importlib.import_module(holder), name_of_class)
    with patch.object(owner, name, raising(getattr(owner, name))):
        yield


@pytest.mark.parametrize("part", FAULTS)
@given(rows=rows_of_logs)
def test_no_row_is_lost_or_moved_and_no_other_row_changes(
    part: str, scorer: SlmStage, frequencies: DocumentFrequencies, rows: list[dict[str, Any]]
) -> None:
    """Run the three steps of the plan with a part that raises for some rows."""

    def run(table: pa.Table) -> list[dict[str, Any]]:
        scorer._known.clear()
        result: list[dict[str, Any]] = detect(scorer(split(table)), frequencies).to_pylist()
        return result

    expected_rows = run(table_of(rows))
    with fault(part):
        rows_with_faults = run(table_of(rows))
        rows_run_alone = [run(table_of(rows).slice(i, 1))[0] for i in range(len(rows))]
    assert [r["row_id"] for r in rows_with_faults] == [f"r{i}" for i in range(len(rows))]
    for row, expected, row_alone in zip(rows_with_faults, expected_rows, rows_run_alone, strict=True):
        assert row["status"] == row_alone["status"]
        if row["status"] == Status.ERROR:
            assert "Raised" in row["error"] and MARK not in row["error"] and ", line " in row["error"]
            assert row["members"] is None and row["evidence"] is None
            assert MARK in repr((row["context"], row["response"]))
        else:
            assert {**row, "usage": None} == {**expected, "usage": None}  # another row may pay for a shared prompt


def test_every_fault_is_triggered(scorer: SlmStage, frequencies: DocumentFrequencies) -> None:
    """Check that each fault occurs for a suitable row, so that the test above is not vacuous."""
    bad = {"question": "When?", "context": [LONG], "response": f"Ask {MARK} 7 times."}
    good = {"question": "When?", "context": ["Call at 9."], "response": "Ask at nine."}
    for part in FAULTS:
        scorer._known.clear()
        with fault(part):
            result = detect(scorer(split(table_of([good, bad, good]))), frequencies)
        status = "ok" if part == "digests" else "error"  # the row then counts as distinct
        assert result["status"].to_pylist() == ["ok", status, "ok"], part


def test_faults_of_the_run_are_raised(scorer: SlmStage) -> None:
    table = split(table_of([{"question": "q", "context": ["c c"], "response": "It opens."}]))
    for error in (ModelError(EXAMPLE, text="dead"), OSError(28, "No space left on device"), ImportError("spacy")):
        with patch("ragassay.pipeline.stages.slm.score_rows", side_effect=error), pytest.raises(type(error)):
            scorer(table)
    dead = RuntimeError("CUDA error: an illegal memory access was encountered")
    scorer._known.clear()
    with patch.object(CountingEngine, "label_logprobs", side_effect=dead), raises("model.engine-failed"):
        scorer(table)


def test_a_fault_after_the_engine_call_repeats_no_work(scorer: SlmStage) -> None:
    rows = [{"question": "When?", "context": [f"Shop {i} opens at 9."], "response": f"It opens at {i}."} for i in range(32)]
    table, engine = split(table_of(rows)), scorer._engine._engine
    assert isinstance(engine, CountingEngine)
    original = score_module.RowScore
    calls = iter(range(100))

    def fail_third(*args: Any, **kwargs: Any) -> Any:
        if "windows" in kwargs and next(calls) == 2:
            raise Raised
        return original(*args, **kwargs)

    scorer._known.clear()
    engine.calls.clear()
    with patch.object(score_module, "RowScore", fail_third):
        result = scorer(table)
    assert sorted(result["status"].to_pylist()) == ["error"] + 31 * ["ok"]
    assert len(engine.calls) == 1 and len(scorer._known) == 31
    assert scorer(table)["status"].to_pylist() == 32 * ["ok"]  # a failed row is not remembered
    assert [len(call) for call in engine.calls] == [32, 1]


def test_a_lack_of_memory_for_every_row_is_raised() -> None:
    def step(some: slice, bad: set[int]) -> list[str]:
        if bad.intersection(range(some.start, some.stop)):
            raise MemoryError
        return ["fine"] * (some.stop - some.start)

    def run(rows: int, bad: set[int]) -> list[str]:
        pieces = contain(rows, lambda some: step(some, bad), lambda _, __: ["failed"])
        return [value for piece in pieces for value in piece]

    assert run(4, {2}) == ["fine", "fine", "failed", "fine"] and run(1, {0}) == ["failed"]
    with pytest.raises(MemoryError):
        run(4, {0, 1, 2, 3})


@given(st.lists(st.integers(0, 9), max_size=40), st.sets(st.integers(0, 9)))
def test_contain_gives_every_row_once_in_order(values: list[int], bad: set[int]) -> None:
    calls = 0

    def step(some: slice) -> list[int | str]:
        nonlocal calls
        calls += 1
        if bad.intersection(values[some]):
            raise ValueError
        return list(values[some])

    def fail(_: int, error: Exception) -> list[int | str]:
        return [type(error).__name__]

    pieces = contain(len(values), step, fail)
    faulty = sum(value in bad for value in values)
    assert [value for piece in pieces for value in piece] == ["ValueError" if v in bad else v for v in values]
    assert calls <= 1 + 2 * faulty * max(1, len(values).bit_length())


def test_the_description_of_a_fault_has_its_location_but_no_log_text() -> None:
    def raise_inside(text: str) -> str:
        raise KeyError(text)

    (description,) = contain(1, lambda _: raise_inside("log text"), lambda _, error: describe_fault(error))
    assert "KeyError in " in description and "log text" not in description
    with raises("test.example", text="c"):
        contain(1, lambda _: (_ for _ in ()).throw(ConfigError(EXAMPLE, text="c")), lambda _, error: None)
