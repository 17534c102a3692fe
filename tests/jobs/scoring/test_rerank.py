"""A job with `rerank`: its stages one after another, its fingerprint, what `plan` counts, and what is wrong in a job file."""

import json
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.config.job import Job, make_job, with_dtypes
from ragassay.jobs.forecast.count import count_stretches
from ragassay.jobs.output.fingerprint import fingerprint
from ragassay.jobs.runtime.resources import threads_of
from ragassay.jobs.scoring.register import check_models
from ragassay.jobs.scoring.stages import stages
from ragassay.pipeline.detectors.frequencies import count
from ragassay.pipeline.detectors.terms import content_terms
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


_done: dict[str, list[dict[str, Any]]] = {}


def run(job: Job) -> list[dict[str, Any]]:
    """Rows after all stages, without Ray and its metrics; once for each job."""
    key = job.model_dump_json()
    if key not in _done:
        _done[key] = run_all(job)
    return _done[key]


def run_all(job: Job) -> list[dict[str, Any]]:
    keys = [{"row_key": i, "row_id": str(i), "status": "ok", **row} for i, row in enumerate(ROWS)]
    table = pa.Table.from_pylist(keys, schema=LOGS)
    frequencies = count(content_terms(passage, "en") for passage in PASSAGES)
    table = run_stages(stages(job, lambda: frequencies), table)
    wanted = raw_schema(pa.schema([]))
    assert table.select(wanted.names).schema.types == wanted.types
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def values(row: dict[str, Any], name: str) -> list[float]:
    (found,) = [member["sentence_scores"] for member in row["members"] if member["name"] == name]
    return list(found)


def test_models_get_the_passages_in_order_and_detectors_as_they_were(tiny_model: str) -> None:
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
    assert set(values(plain[1], "sure") + values(ranked[1], "sure")) == {None}  # there is no question to answer
    assert [use["name"] for use in ranked[0]["usage"]] == ["rerank", "tiny", "sure"]


def test_keep_takes_the_place_of_windows_and_says_so(tiny_model: str) -> None:
    windows, kept, few = (run(job(tiny_model, {"keep": keep}, window=300))[3] for keep in (None, 1, 3))
    assert windows["context_windows"] > 1 and windows["error"] is None
    said = "SLM 'tiny': judged by the best {} of 4 passages, which do not all fit its window of 300 tokens"
    assert kept["error"] == said.format(1) and few["error"] == said.format(3)
    assert kept["status"] == "ok" and values(kept, "tiny") != values(windows, "tiny")
    tokens = [next(use["tokens_computed"] for use in row["usage"] if use["name"] == "tiny") for row in (kept, few, windows)]
    assert tokens[0] < min(tokens[1:])
    assert run(job(tiny_model, {"keep": 4}, window=300))[3]["error"] is None


def test_keep_cuts_nothing_that_fits(tiny_model: str) -> None:
    for all_of_it, kept in zip(run(job(tiny_model, {})), run(job(tiny_model, {"keep": 1})), strict=True):
        assert all_of_it["error"] == kept["error"] and all_of_it["passage_order"] == kept["passage_order"]
        assert all_of_it["members"] is None or values(all_of_it, "tiny") == pytest.approx(values(kept, "tiny"), rel=1e-5)


def test_the_fingerprint_names_the_model_that_ranks(tiny_model: str) -> None:
    plain, ranked, mean, keep = (
        fingerprint(with_dtypes(job(tiny_model, rerank))) for rerank in (None, {}, {"attention": "mean"}, {"keep": 2})
    )
    assert plain["rerank"] is None and {**plain, "rerank": ranked["rerank"]} == ranked
    assert json.dumps(ranked) and len({json.dumps(one["rerank"]) for one in (ranked, mean, keep)}) == 3


def test_plan_counts_the_tokens_that_are_then_read(tiny_model: str) -> None:
    wanted = job(tiny_model, {})
    table = stages(wanted)[0](
        pa.Table.from_pylist([{"row_key": i, "row_id": str(i), "status": "ok", **r} for i, r in enumerate(ROWS)], schema=LOGS)
    )
    (counted,) = count_stretches(wanted, [table])
    used = [use for row in run(wanted) for use in row["usage"] or () if use["name"] == "rerank"]
    assert counted.asked["rerank"].tokens == sum(use["tokens_computed"] + use["tokens_reused"] for use in used) > 0
    assert "rerank" not in count_stretches(job(tiny_model, None), [table])[0].asked


def test_it_is_checked_before_the_run_and_has_its_threads(tiny_model: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    wanted = job(tiny_model, {})
    rerank, pools = wanted.members.rerank, wanted.members.local_pools
    assert rerank is not None and threads_of(rerank.engine, pools.values()) == 2  # the SLM and the score have theirs
    check_models(wanted)
    with raises("model.unknown"):
        check_models(job(tiny_model, {"model": str(tmp_path / "nowhere")}))


@pytest.mark.parametrize(
    ("settings", "says"),
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
def test_faults_are_named(settings: dict[str, Any], says: str) -> None:
    with refuses(says):
        make_job(settings)
