"""Passages in the order of G: equal to eq. 6 by hand, laws of the order, what has none, long passages, what is kept."""

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
from ragassay.pipeline.uncertainty.rerank import Found, question_uncertainty, rank_rows
from ragassay.pipeline.uncertainty.scores import Attention
from ragassay.schemas.columns import Status
from tests.pipeline.uncertainty.test_reader import naive
from tests.pipeline.uncertainty.test_rows import SPLITTER, table_of
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


def asked(*contexts: list[str | None] | list[str], question: str | None = QUESTION) -> pa.Table:
    return table_of([{"question": question, "context": context, "response": "At ten."} for context in contexts])


def orders(reranker: RerankStage, *contexts: list[str | None] | list[str]) -> list[list[int] | None]:
    found: list[list[int] | None] = reranker(asked(*contexts))["passage_order"].to_pylist()
    return found


@pytest.mark.parametrize("attention", Attention)
def test_the_order_is_that_of_equation_6(reranker: RerankStage, tiny_model: str, attention: Attention) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float64, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    by_hand = []
    for passage in PASSAGES:
        user = QUESTION_PROMPT.partition("{%")[0] + passage + "\n"
        head = tokenizer.apply_chat_template([{"role": "user", "content": user}], tokenize=False, add_generation_prompt=True)
        ids = [tokenizer(text, add_special_tokens=False).input_ids for text in (head, QUESTION)]
        signs = naive(model, *ids)
        paid = {Attention.MAX: signs.attention_max, Attention.MEAN: signs.attention_mean, Attention.LAST: signs.attention_last}
        by_hand.append(-float(np.sum(np.exp(paid[attention]) * signs.logprob)))
        assert question_uncertainty(signs, attention) == pytest.approx(by_hand[-1])
    rerank = Rerank(model=tiny_model, attention=attention)
    (ranked,) = rank_rows([Found(QUESTION, PASSAGES)], rerank, reranker._encoder, reranker._reader, lambda text: [])
    assert ranked.order == np.argsort(by_hand).tolist() and ranked.prompts == len(PASSAGES)


def test_the_order_in_which_passages_come_changes_nothing(reranker: RerankStage) -> None:
    contexts = [list(some) for some in permutations(PASSAGES)][::17]
    found = orders(reranker, *contexts)
    texts = [[context[i] for i in order or ()] for context, order in zip(contexts, found, strict=True)]
    assert all(sorted(order or ()) == list(range(len(PASSAGES))) for order in found)
    assert all(text == texts[0] for text in texts) and len(texts) > 5


def test_equal_passages_keep_their_order_and_empty_ones_stand_last(reranker: RerankStage) -> None:
    a, b = PASSAGES[:2]
    (order,) = orders(reranker, ["", b, a, b, None, " ", a])
    assert order is not None and order[4:] == [0, 4, 5]
    assert order[:4] in ([1, 3, 2, 6], [2, 6, 1, 3])


def test_what_has_no_order_is_left_alone_and_costs_nothing(reranker: RerankStage) -> None:
    table = pa.concat_tables(
        [
            asked(PASSAGES, question=None),
            asked(PASSAGES, question=" "),
            asked(PASSAGES[:1]),
            asked(["", PASSAGES[0]] * 2),
            asked([]),
        ]
    )
    found = reranker(table)
    assert found.schema == table.schema and found["passage_order"].to_pylist() == [None] * 5
    assert found["status"].to_pylist() == ["ok"] * 4 + [Status.NO_CONTEXT.value]
    costs = [usage for row in found["usage"].to_pylist() for usage in row or ()]
    assert len(costs) == 4 and all(cost["prompts"] == cost["tokens_computed"] == 0 for cost in costs)
    assert found.drop_columns(["usage"]).equals(table.drop_columns(["usage"]))


def test_what_rows_share_is_read_once(reranker: RerankStage) -> None:
    first, second, third = reranker(asked(PASSAGES, PASSAGES[::-1], PASSAGES[1:])).to_pylist()
    assert [row["usage"][0]["prompts"] for row in (first, second, third)] == [len(PASSAGES), 0, 0]
    assert first["usage"][0]["name"] == "rerank" and first["usage"][0]["tokens_computed"] > 0
    assert [4 - i for i in second["passage_order"]] == first["passage_order"]
    assert [i + 1 for i in third["passage_order"]] == [i for i in first["passage_order"] if i]


def test_rows_after_it_have_their_passages_best_first(reranker: RerankStage) -> None:
    table = reranker(asked([None, *PASSAGES], PASSAGES[:1]))
    places, (ordered, single) = select_ok_rows(table, keep_best=2)
    assert places == [0, 1] and ordered.keep_best == 2 and single.keep_best is None
    order = table["passage_order"][0].as_py()
    assert ordered.context == [[None, *PASSAGES][i] for i in order[:-1]] and order[-1] == 0
    assert table["context"].to_pylist() == [[None, *PASSAGES], PASSAGES[:1]]


def test_a_long_passage_is_read_in_pieces_and_its_best_counts(tiny_model: str) -> None:
    engine = TransformersSettings(dtype="float32", max_model_len=160)
    reranker = RerankStage(Rerank(model=tiny_model, engine=engine), SPLITTER, 2)
    reranker.setup()
    long = " ".join(f"Room {i} shows glass of the year {1800 + i}." for i in range(40))
    (row,) = reranker(asked([*PASSAGES, long])).to_pylist()
    assert sorted(row["passage_order"]) == list(range(6)) and row["usage"][0]["prompts"] > 7
    wordy = "Why is it so? " * 60
    (left,) = reranker(asked(PASSAGES, question=wordy)).to_pylist()
    assert left["passage_order"] is None and left["status"] == Status.OK
    assert "rerank" in left["error"] and "160 tokens" in left["error"]


def test_a_fault_is_its_rows(reranker: RerankStage, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = reranker._encoder.encode

    def faulty(some: Any) -> Any:
        if any("FAULT" in texts[0] for _, _, texts in some):
            raise ValueError("secret")
        return encode(some)

    monkeypatch.setattr(reranker._encoder, "encode", faulty)
    table = pa.concat_tables([asked(PASSAGES), asked(PASSAGES, question="FAULT?"), asked(PASSAGES)])
    rows = run_contained(reranker, table).to_pylist()
    assert [row["status"] for row in rows] == ["ok", "error", "ok"]
    assert rows[1]["error"].startswith("rerank: ValueError") and "secret" not in rows[1]["error"]
    assert rows[0]["passage_order"] == rows[2]["passage_order"] is not None


def test_a_missing_model_is_the_runs_error(tmp_path: Any) -> None:
    with raises("model.unknown"):
        RerankStage(Rerank(model=str(tmp_path / "none")), SPLITTER, 1).setup()
