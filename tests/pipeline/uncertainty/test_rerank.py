"""Ranking of passages by G: equal to eq. 6 by hand, laws of the order, rows without an order, long passages."""

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.rows import select_ok_rows
from ragassay.pipeline.stages.rerank import RerankStage
from ragassay.pipeline.stages.stage import run_contained
from ragassay.pipeline.uncertainty.config import QUESTION_PROMPT, Rerank
from ragassay.pipeline.uncertainty.rerank import RetrievedPassages, compute_question_uncertainty, rank_passages
from ragassay.pipeline.uncertainty.scores import AttentionWeighting
from ragassay.schemas.columns import Status
from tests.pipeline.uncertainty.test_measure_rows import SPLITTER, make_table
from tests.pipeline.uncertainty.test_model import measure_plainly
from tests.raises import raises

QUESTION = "When does the museum open on Sundays?"
PASSAGES = [
    "The museum opens at 10 a.m. on Sundays.", "Tickets cost 12 euros.", "The cloakroom is free.", "Dogs stay outside.",
    "The café closes an hour before the museum.",
]  # fmt: skip


@pytest.fixture(scope="module")
def reranker(tiny_model: str) -> RerankStage:
    stage = RerankStage(Rerank(model=tiny_model, engine={"dtype": "float32"}), SPLITTER, 2)
    stage.setup()
    return stage


def make_question_table(*contexts: list[str | None] | list[str], question: str | None = QUESTION) -> pa.Table:
    return make_table([{"question": question, "context": context, "response": "At ten."} for context in contexts])


def rank(reranker: RerankStage, *contexts: list[str | None] | list[str]) -> list[list[int] | None]:
    orders: list[list[int] | None] = reranker(make_question_table(*contexts))["passage_order"].to_pylist()
    return orders


@pytest.mark.parametrize("attention", AttentionWeighting)
def test_the_order_is_by_g_of_equation_6(reranker: RerankStage, tiny_model: str, attention: AttentionWeighting) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float64, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    by_hand = []
    for passage in PASSAGES:
        user = QUESTION_PROMPT.partition("{%")[0] + passage + "\n"
        head = tokenizer.apply_chat_template([{"role": "user", "content": user}], tokenize=False, add_generation_prompt=True)
        ids = [tokenizer(text, add_special_tokens=False).input_ids for text in (head, QUESTION)]
        statistics = measure_plainly(model, *ids)
        attention_arrays = {
            AttentionWeighting.MAX: statistics.attention_max,
            AttentionWeighting.MEAN: statistics.attention_mean,
            AttentionWeighting.LAST: statistics.attention_last,
        }
        by_hand.append(-float(np.sum(np.exp(attention_arrays[attention]) * statistics.logprob)))
        assert compute_question_uncertainty(statistics, attention) == pytest.approx(by_hand[-1])
    rerank = Rerank(model=tiny_model, attention=attention)
    (ranked,) = rank_passages(
        [RetrievedPassages(QUESTION, PASSAGES)], rerank, reranker._encoder, reranker._model, lambda text: []
    )
    assert ranked.order == np.argsort(by_hand).tolist() and ranked.prompts == len(PASSAGES)


def test_the_given_order_does_not_change_the_ranking(reranker: RerankStage) -> None:
    contexts = [list(context) for context in permutations(PASSAGES)][::17]
    orders = rank(reranker, *contexts)
    texts = [[context[i] for i in order or ()] for context, order in zip(contexts, orders, strict=True)]
    assert all(sorted(order or ()) == list(range(len(PASSAGES))) for order in orders)
    assert all(text == texts[0] for text in texts) and len(texts) > 5


def test_equal_passages_keep_their_order_and_empty_ones_are_last(reranker: RerankStage) -> None:
    a, b = PASSAGES[:2]
    (order,) = rank(reranker, ["", b, a, b, None, " ", a])
    assert order is not None and order[4:] == [0, 4, 5]
    assert order[:4] in ([1, 3, 2, 6], [2, 6, 1, 3])


def test_rows_that_cannot_be_ranked_are_unchanged_and_cost_nothing(reranker: RerankStage) -> None:
    table = pa.concat_tables(
        [
            make_question_table(PASSAGES, question=None),
            make_question_table(PASSAGES, question=" "),
            make_question_table(PASSAGES[:1]),
            make_question_table(["", PASSAGES[0]] * 2),
            make_question_table([]),
        ]
    )
    ranked = reranker(table)
    assert ranked.schema == table.schema and ranked["passage_order"].to_pylist() == [None] * 5
    assert ranked["status"].to_pylist() == ["ok"] * 4 + [Status.NO_CONTEXT.value]
    costs = [usage for row in ranked["usage"].to_pylist() for usage in row or ()]
    assert len(costs) == 4 and all(cost["prompts"] == cost["tokens_computed"] == 0 for cost in costs)
    assert ranked.drop_columns(["usage"]).equals(table.drop_columns(["usage"]))


def test_passages_that_rows_share_are_measured_once(reranker: RerankStage) -> None:
    first, second, third = reranker(make_question_table(PASSAGES, PASSAGES[::-1], PASSAGES[1:])).to_pylist()
    assert [row["usage"][0]["prompts"] for row in (first, second, third)] == [len(PASSAGES), 0, 0]
    assert first["usage"][0]["name"] == "rerank" and first["usage"][0]["tokens_computed"] > 0
    assert [4 - i for i in second["passage_order"]] == first["passage_order"]
    assert [i + 1 for i in third["passage_order"]] == [i for i in first["passage_order"] if i]


def test_later_stages_get_the_best_passages_first(reranker: RerankStage) -> None:
    table = reranker(make_question_table([None, *PASSAGES], PASSAGES[:1]))
    row_numbers, (ordered, single) = select_ok_rows(table, keep_best=2)
    assert row_numbers == [0, 1] and ordered.keep_best == 2 and single.keep_best is None
    order = table["passage_order"][0].as_py()
    assert ordered.context == [[None, *PASSAGES][i] for i in order[:-1]] and order[-1] == 0
    assert table["context"].to_pylist() == [[None, *PASSAGES], PASSAGES[:1]]


def test_a_long_passage_is_measured_in_pieces_and_its_best_piece_counts(tiny_model: str) -> None:
    engine = TransformersSettings(dtype="float32", max_model_len=160)
    reranker = RerankStage(Rerank(model=tiny_model, engine=engine), SPLITTER, 2)
    reranker.setup()
    long = " ".join(f"Room {i} shows glass of the year {1800 + i}." for i in range(40))
    (row,) = reranker(make_question_table([*PASSAGES, long])).to_pylist()
    assert sorted(row["passage_order"]) == list(range(6)) and row["usage"][0]["prompts"] > 7
    long_question = "Why is it so? " * 60
    (unranked,) = reranker(make_question_table(PASSAGES, question=long_question)).to_pylist()
    assert unranked["passage_order"] is None and unranked["status"] == Status.OK
    assert "rerank" in unranked["error"] and "160 tokens" in unranked["error"]


def test_a_failure_affects_only_its_row(reranker: RerankStage, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = reranker._encoder.encode

    def fail_on_marker(prompts: Any) -> Any:
        if any("FAULT" in texts[0] for _, _, texts in prompts):
            raise ValueError("secret")
        return encode(prompts)

    monkeypatch.setattr(reranker._encoder, "encode", fail_on_marker)
    table = pa.concat_tables(
        [make_question_table(PASSAGES), make_question_table(PASSAGES, question="FAULT?"), make_question_table(PASSAGES)]
    )
    rows = run_contained(reranker, table).to_pylist()
    assert [row["status"] for row in rows] == ["ok", "error", "ok"]
    assert rows[1]["error"].startswith("rerank: ValueError") and "secret" not in rows[1]["error"]
    assert rows[0]["passage_order"] == rows[2]["passage_order"] is not None


def test_a_missing_model_ends_the_run(tmp_path: Any) -> None:
    with raises("model.unknown"):
        RerankStage(Rerank(model=str(tmp_path / "none")), SPLITTER, 1).setup()
