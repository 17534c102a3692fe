"""A job with `rerank`: its stages, its fingerprint, the tokens that `plan` counts, and invalid settings."""

import json
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.config.job import Job, make_job, resolve_engines
from ragassay.jobs.forecast.count import count_segments
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.runtime.resources import count_threads
from ragassay.jobs.scoring.register import prepare_models
from ragassay.jobs.scoring.stages import make_stages
from ragassay.pipeline.detectors.frequencies import count_frequencies
from ragassay.pipeline.detectors.terms import stem_content_words
from ragassay.schemas.columns import LOGS, raw_schema
from tests.conftest import run_stages
from tests.raises import raises, refuses

PASSAGES = ["Staff wear a badge.", "Dogs stay outside.", "Shop 3 opens at 7 a.m. on Sundays.", "It is red."]
LONG = [f"{passage} " * 14 for passage in PASSAGES]
ROWS: list[dict[str, Any]] = [
    {"question": "When does shop 3 open?", "context": PASSAGES, "response": "Shop 3 opens at 7 a.m. Staff wear a badge."},
    {"question": None, "context": PASSAGES, "response": "Dogs stay outside."},
    {"question": "What is it?", "context": None, "response": "It is red."},
    {"question": "Where do dogs stay?", "context": ["", *LONG], "response": "Dogs stay outside."},
]
NO_QUESTION = "{% for passage in context %}{{ passage }}\n{% endfor %}{{ sentence }}"


def job(tiny_model: str, rerank: dict[str, Any] | None, window: int = 2048) -> Job:
    engine = {"kind": "transformers", "dtype": "float32", "max_model_len": window}
    return make_job(
        {
            "members": {
                "slms": [{"name": "tiny", "model": tiny_model, "engine": engine, "prompt": NO_QUESTION}],
                "uncertainty": [{"name": "sure", "model": tiny_model, "engine": {"dtype": "float32"}, "score": "perplexity"}],
                "detectors": [{"name": "attribution", "kind": "attribution"}],
                "rerank": None if rerank is None else {"model": tiny_model, "engine": {"dtype": "float32"}, **rerank},
            }
        }
    )


_results: dict[str, list[dict[str, Any]]] = {}


def run(job: Job) -> list[dict[str, Any]]:
    """Rows after all stages, without Ray and its metrics; computed once per job."""
    key = job.model_dump_json()
    if key not in _results:
        _results[key] = run_all(job)
    return _results[key]


def run_all(job: Job) -> list[dict[str, Any]]:
    keys = [{"row_key": i, "row_id": str(i), "status": "ok", **row} for i, row in enumerate(ROWS)]
    table = pa.Table.from_pylist(keys, schema=LOGS)
    frequencies = count_frequencies(stem_content_words(passage, "en") for passage in PASSAGES)
    table = run_stages(make_stages(job, lambda: frequencies), table)
    schema = raw_schema(pa.schema([]))
    assert table.select(schema.names).schema.types == schema.types
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def values(row: dict[str, Any], name: str) -> list[float]:
    (scores,) = [member["sentence_scores"] for member in row["members"] if member["name"] == name]
    return list(scores)


def test_models_get_ranked_passages_and_detectors_the_original_order(tiny_model: str) -> None:
    plain, ranked = run(job(tiny_model, None)), run(job(tiny_model, {}))
    assert [row["passage_order"] for row in plain] == [None] * 4
    assert [row["status"] for row in ranked] == [row["status"] for row in plain] == ["ok", "ok", "no_context", "ok"]
    first, blank, none, long = (row["passage_order"] for row in ranked)
    assert sorted(first) == [0, 1, 2, 3] != first and blank is none is None and sorted(long) == [0, 1, 2, 3, 4]
    for before, after in zip(plain, ranked, strict=True):
        assert before["context"] == after["context"] and before["evidence"] == after["evidence"]
        if before["members"]:
            assert values(before, "attribution") == values(after, "attribution")
    for name in ("tiny", "sure"):
        assert values(plain[0], name) != values(ranked[0], name)
    assert values(plain[1], "tiny") == pytest.approx(values(ranked[1], "tiny"), rel=1e-4)
    assert set(values(plain[1], "sure") + values(ranked[1], "sure")) == {None}  # without a question there is nothing to answer
    assert [use["name"] for use in ranked[0]["usage"]] == ["rerank", "tiny", "sure"]


def test_keep_replaces_windows_and_the_row_records_it(tiny_model: str) -> None:
    windows, kept, few = (run(job(tiny_model, {"keep": keep}, window=300))[3] for keep in (None, 1, 3))
    assert windows["context_windows"] > 1 and windows["error"] is None
    expected_error = "SLM 'tiny': judged by the best {} of 4 passages, because all passages do not fit its window of 300 tokens"
    assert kept["error"] == expected_error.format(1) and few["error"] == expected_error.format(3)
    assert kept["status"] == "ok" and values(kept, "tiny") != values(windows, "tiny")
    tokens = [next(use["tokens_computed"] for use in row["usage"] if use["name"] == "tiny") for row in (kept, few, windows)]
    assert tokens[0] < min(tokens[1:])
    assert run(job(tiny_model, {"keep": 4}, window=300))[3]["error"] is None


def test_keep_changes_nothing_if_all_passages_fit(tiny_model: str) -> None:
    for ranked, kept in zip(run(job(tiny_model, {})), run(job(tiny_model, {"keep": 1})), strict=True):
        assert ranked["error"] == kept["error"] and ranked["passage_order"] == kept["passage_order"]
        assert ranked["members"] is None or values(ranked, "tiny") == pytest.approx(values(kept, "tiny"), rel=1e-5)


def test_the_fingerprint_contains_the_reranker(tiny_model: str) -> None:
    plain, ranked, mean, keep = (
        make_fingerprint(resolve_engines(job(tiny_model, rerank))) for rerank in (None, {}, {"attention": "mean"}, {"keep": 2})
    )
    assert plain["rerank"] is None and {**plain, "rerank": ranked["rerank"]} == ranked
    assert json.dumps(ranked) and len({json.dumps(settings["rerank"]) for settings in (ranked, mean, keep)}) == 3


def test_plan_counts_the_tokens_that_the_reranker_reads(tiny_model: str) -> None:
    reranking_job = job(tiny_model, {})
    table = make_stages(reranking_job)[0](
        pa.Table.from_pylist([{"row_key": i, "row_id": str(i), "status": "ok", **r} for i, r in enumerate(ROWS)], schema=LOGS)
    )
    (counts,) = count_segments(reranking_job, [table])
    used = [use for row in run(reranking_job) for use in row["usage"] or () if use["name"] == "rerank"]
    assert counts.workloads["rerank"].prompt_tokens == sum(use["tokens_computed"] + use["tokens_reused"] for use in used) > 0
    assert "rerank" not in count_segments(job(tiny_model, None), [table])[0].workloads


def test_the_reranker_is_checked_before_the_run_and_gets_its_share_of_threads(
    tiny_model: str, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    reranking_job = job(tiny_model, {})
    rerank, pools = reranking_job.members.rerank, reranking_job.members.local_pools
    assert (
        rerank is not None and count_threads(rerank.engine, pools.values()) == 2
    )  # the SLM and the uncertainty score have the other threads
    prepare_models(reranking_job)
    with raises("model.unknown"):
        prepare_models(job(tiny_model, {"model": str(tmp_path / "nowhere")}))


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"members": {"rerank": {"keep": 0}}}, "members.rerank.keep"),
        ({"members": {"rerank": {"attention": "most"}}}, "members.rerank.attention"),
        ({"members": {"rerank": {"modell": "a"}}}, "members.rerank.modell"),
        ({"members": {"rerank": {"engine": "vllm"}}}, "members.rerank.engine.kind"),
        ({"members": {"rerank": {"prompt": "No passage"}}}, "prompt.no-context"),
        ({"members": {"rerank": {"prompt": "{{ context | join }}{{ question }}"}}}, "prompt.judged-once"),
        ({"members": {"rerank": {}, "slms": [{"name": "rerank"}]}}, "config.rerank-name"),
        ({"members": {"rerank": {}, "slms": [], "detectors": [{"name": "n", "kind": "novelty"}]}}, "config.rerank-unused"),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(settings: dict[str, Any], code: str) -> None:
    with refuses(code):
        make_job(settings)
