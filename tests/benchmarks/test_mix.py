"""The training data of the bundled verifier contains no evaluation data."""

from itertools import accumulate, pairwise
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from ragassay.jobs.data.handbook.build import LOGS
from ragassay.jobs.training.shortcuts import list_statements, predict_from_statement, render_table
from tests.benchmarks.leaks import compute_overlap, index_texts, is_leak
from tests.benchmarks.mix import (
    MEASURED_FILES,
    WRITTEN,
    WRITTEN_SETS,
    build_mix,
    find_changed_sentences,
    is_held_out_context,
    is_held_out_item,
    list_new_items,
)

Built = tuple[pl.DataFrame, dict[str, dict[str, int]]]
TEST_TEXT = "The harbour master of Fenwick keeps eleven boats and lends none of them to strangers in winter."


def make_claims(name: str, number: int) -> list[dict[str, object]]:
    """Make two claims about one context; for odd numbers, the wrong claim's words reveal its label."""
    words = Random(f"{name} {number}").sample([f"{a}{b}" for a in "bdfghklm" for b in ("oth", "arn", "elk", "ist", "urm")], 14)
    good = " ".join(words[:7])
    bad = f"{good} never a scribe" if number % 2 else " ".join(words[7:])
    rows = ((good, "correct"), (bad, "wrong"))
    return [{"question": "When?", "context": [" ".join(words)], "response": text, "label": label} for text, label in rows]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("fever", "fever_dev"):
        pl.DataFrame([row for n in range(60) for row in make_claims(name, n)]).write_parquet(folder / f"{name}.parquet")
    leak = {"question": "", "context": [TEST_TEXT.replace("eleven", "twelve")], "response": "He lends boats.", "label": "wrong"}
    dev = pl.read_parquet(folder / "fever_dev.parquet")
    pl.concat([dev, pl.DataFrame([leak], schema=dev.schema)]).write_parquet(folder / "fever_dev.parquet")
    for name in MEASURED_FILES:
        measured_rows = [{"question": "", "context": [TEST_TEXT], "response": "He has boats.", "label": "correct"}]
        pl.DataFrame(measured_rows).write_parquet(folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def built(data: Path) -> Built:
    mix, counts = build_mix(data)
    return mix, {name: dict(count) for name, count in counts.items()}


def test_the_mix_contains_no_evaluation_data(data: Path, built: Built) -> None:
    mix, counts = built
    trained = set(mix["context"].explode().to_list())
    handbook = pl.read_parquet(LOGS / "**/*.parquet").filter(pl.col("split") == "test")
    assert trained.isdisjoint(handbook["context"].explode().to_list())
    new = pl.read_parquet(WRITTEN / "answers3.parquet")
    measured = new.filter(pl.col("item").is_in(list_new_items(new)))
    assert trained.isdisjoint(measured["context"].explode().to_list())
    for name in WRITTEN_SETS:
        written = pl.read_parquet(WRITTEN / f"{name}.parquet")
        kept = written.filter([is_held_out_item(item) for item in written["item"]])
        assert 0.05 < kept["item"].n_unique() / written["item"].n_unique() < 0.15
        assert trained.isdisjoint(kept["context"].explode().to_list())
    fever = [tuple(context) for context in pl.read_parquet(data / "fever.parquet")["context"].to_list()]
    held_out = {passage for context in fever if is_held_out_context(context) for passage in context}
    assert held_out and held_out.isdisjoint(mix.filter(source="fever")["context"].explode().to_list())
    assert counts["fever_dev"]["near-duplicates of evaluation data"] == 1
    assert not any("master of Fenwick" in passage for passage in trained)


def test_rows_of_a_mix_have_a_weight_and_the_statement_they_change(built: Built) -> None:
    mix, _ = built
    assert set(mix["source"]) == {*WRITTEN_SETS, "handbook", "fever", "fever_dev", "by rule"}
    changes = mix.filter(pl.col("of").is_not_null())
    assert len(changes) > 1000 and set(changes["source"]) == {"statements", "summaries", "answers4", "answers5"}
    assert mix.filter(pl.col("weight") < 1)["source"].is_in(["fever", "fever_dev", "by rule"]).all()
    assert mix["label"].is_in(["correct", "partial", "wrong"]).all()


def test_a_pair_is_what_differs_between_two_answers_that_are_otherwise_alike() -> None:
    def make_answer(*sentences: tuple[str, bool]) -> dict[str, object]:
        starts = [0, *accumulate(len(text) for text, _ in sentences)]
        labels = [
            {"start": start, "end": end, "supported": good}
            for (start, end), (_, good) in zip(pairwise(starts), sentences, strict=True)
        ]
        return {"response": "".join(text for text, _ in sentences), "sentence_labels": labels}

    first = make_answer(("It opens at 9.", True), ("It closes at 5.", True), ("Ring first.", True))
    second = make_answer(("It opens at 9.", True), ("It closes at 6.", False), ("Ring the bell.", True))
    shorter = make_answer(("It opens at 5.", False), ("Ring first.", True))
    other = make_answer(("It shuts at 9.", False), ("It lasts an hour.", False), ("Ring twice.", False))
    assert find_changed_sentences([first, second, shorter, other]) == [("It closes at 5.", "It closes at 6.")]


def test_rows_with_words_that_reveal_the_label_are_thinned_out(built: Built) -> None:
    mix, counts = built
    assert counts["fever_dev"]["predicted from their words alone"] > 20
    remaining = mix.filter(source="fever_dev")
    has_shortcut = remaining["response"].str.contains("never a scribe")
    assert has_shortcut.sum() < 0.5 * 30


@pytest.mark.parametrize("position", range(17))
def test_a_text_with_a_word_changed_is_a_near_duplicate(position: int) -> None:
    words = TEST_TEXT.split()
    changed = " ".join([*words[:position], "perhaps", *words[position + 1 :]])
    assert is_leak(["Other."], changed, index_texts([TEST_TEXT]))


def test_near_duplicates_are_symmetric_and_exclude_short_phrases() -> None:
    claim = "Adams Street was sold to the harbour board in May."
    long_text = f"{'Nothing of this is known to anyone here. ' * 20}{claim}"
    assert compute_overlap(long_text, index_texts([claim])) == 1 and compute_overlap(claim, index_texts([long_text])) == 1
    assert compute_overlap(TEST_TEXT, index_texts([claim])) == compute_overlap("", index_texts([claim])) == 0
    index = index_texts(["It is so.", f"It is thought that {claim}"])
    assert not is_leak(["The harbour of Fenwick is closed."], "It is thought that nobody came home again.", index)
    assert is_leak([], "It is so.", index) and not is_leak([], "It is so for now.", index)


def test_shortcuts_are_detected_only_in_statements_that_have_them() -> None:
    rng = Random(1)
    statements = [
        (" ".join(rng.choices(["ship", "clerk", "guild", "town", "year"], k=6)), rng.random() < 0.5) for _ in range(400)
    ]
    truth = [supported for _, supported in statements]
    groups = [i // 2 for i in range(400)]
    auroc = roc_auc_score(truth, predict_from_statement([text for text, _ in statements], truth, groups))
    chances = predict_from_statement(
        [f"{text} {'indeed' if supported else 'never'}" for text, supported in statements], truth, groups
    )
    assert 0.4 < auroc < 0.6
    assert all((p > 0.5) == supported for p, supported in zip(chances, truth, strict=True))
    rows = [
        {
            "source": "shortcuts",
            "context": [str(i // 2)],
            "statement": f"{text} {'indeed' if good else 'never'}",
            "supported": good,
        }
        for i, (text, good) in enumerate(statements)
    ]
    assert "| shortcuts | 400 |" in (report := render_table(pl.DataFrame(rows))) and "1.00" in report


def test_each_labeled_sentence_is_a_statement(built: Built) -> None:
    answers = built[0].filter(source="answers").head(3)
    labels = [label for labels in answers["sentence_labels"].to_list() for label in labels]
    assert len(list_statements(answers)) == len(labels)
