"""Outputs without text, and texts that a function of the user redacts. The tests search every byte of the output."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs as pafs
from rich.console import Console

from ragassay.jobs.config.job import make_job
from ragassay.jobs.input import Logs, find_logs
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.run import run_job
from ragassay.jobs.scoring.stages import select_passthrough
from ragassay.pipeline.text.redact import Redaction, redaction_identity
from ragassay.schemas.columns import Status
from tests.chat_server import Reply, Serve, completion
from tests.conftest import example_rows, write_logs
from tests.job_settings import merged
from tests.jobs.conftest import invoke, read_rows, write_job
from tests.raises import fails, raises, refuses

QUIET = Console(quiet=True)
DETECTORS = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
MARK = "Zyxwvut"
"""Part of every text: a name that no context contains, so that detectors report it too."""


def read_all_text(folder: Path) -> str:
    """All content of a folder: names, bytes, and the values of Parquet files, which are compressed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    parquet = [repr(pq.read_table(path, partitioning=None).to_pylist()) for path in files if path.suffix == ".parquet"]
    return "\n".join([*map(str, files), *(path.read_bytes().decode("latin-1") for path in files), *parquet])


def make_marked_rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "row_id": f"r{i}",
            "question": f"Who is {MARK}q?",
            "context": with_ids([*row["context"], f"A passage of {MARK}c, of 1990."]),
            "response": f"{row['response']} In 1987 {MARK}r Quux met ann{i}@example.org.",
            "comment": f"{MARK}t",
            "nested": [{"note": f"{MARK}n"}],
            "data": f"{MARK}b".encode(),
            "price": 1.5,
        }
        for i, row in enumerate(example_rows(count))
    ] + [
        {
            **example_rows(1)[0],
            "row_id": "bad",
            "context": with_ids(["A passage."]),
            "response": None,
            "comment": f"{MARK}t",
        }
    ]


def with_ids(texts: list[str]) -> list[dict[str, str]]:
    return [{"text": text, "id": f"/home/{MARK}p/ann@shop.example-{number}.pdf"} for number, text in enumerate(texts)]


@pytest.fixture
def folder(without_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", make_marked_rows(8))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("hide"):
            del sys.modules[name]


def test_an_output_without_text_contains_none(folder: Path) -> None:
    settings = {"members": {"slms": [], "detectors": DETECTORS}}
    run_job(make_job(settings), str(folder / "logs"), str(folder / "full"), QUIET)
    assert read_all_text(folder / "full").count(MARK) > 50
    job = make_job(merged(settings, {"output": {"drop_text": {"keep": ["tenant"]}}}))
    run = run_job(job, str(folder / "logs"), str(folder / "bare"), QUIET)
    assert (
        run.rows["scored"] == 8 and MARK not in read_all_text(folder / "bare") and "Staff" not in read_all_text(folder / "bare")
    )
    full, bare = ({row["row_id"]: row for row in read_rows(folder / name)} for name in ("full", "bare"))
    assert full.keys() == bare.keys()
    for name, row in bare.items():
        assert (row["question"], row["context"], row["response"], row["passage_ids"]) == (None, None, None, None)
        assert row["tenant"] == full[name]["tenant"] and row["dt"] == full[name]["dt"]
        assert "comment" not in row and "nested" not in row and "data" not in row and row["price"] == full[name]["price"]
        for column in ("score", "verdict", "status", "members", "error"):
            assert row[column] == full[name][column]
        for sentence, full_sentence in zip(row["sentences"] or [], full[name]["sentences"] or [], strict=True):
            assert sentence == {**full_sentence, "text": None}
        for evidence, full_evidence in zip(row["evidence"] or [], full[name]["evidence"] or [], strict=True):
            missing = [{**item, "text": None} for item in full_evidence["missing"]]
            assert evidence == {**full_evidence, "passage_id": None, "missing": missing}
    assert any(at["passage_id"] for row in full.values() for at in row["evidence"] or [])
    assert any(at["missing"] for row in bare.values() for at in row["evidence"] or [])
    with raises("output.other-settings", settings=["output.drop_text"]):  # an output without text never gets text
        run_job(make_job(settings), str(folder / "logs"), str(folder / "bare"), QUIET)


def test_attack_an_output_without_text_contains_ids_of_passages_only_if_they_are_kept(folder: Path) -> None:
    job = make_job({"members": {"slms": [], "detectors": DETECTORS}, "output": {"drop_text": {"keep": ["passage_ids"]}}})
    run_job(job, str(folder / "logs"), str(folder / "ids"), QUIET)
    kept = {row["row_id"]: row for row in read_rows(folder / "ids")}
    expected = {row["row_id"]: [passage["id"] for passage in row["context"]] for row in make_marked_rows(8)}
    assert {name: row["passage_ids"] for name, row in kept.items()} == expected
    for name, row in kept.items():
        for at in row["evidence"] or []:
            assert at["passage_id"] == (None if at["passage"] is None else expected[name][at["passage"]])
        assert (row["question"], row["context"], row["response"]) == (None, None, None)
    text = read_all_text(folder / "ids")
    assert f"{MARK}p" in text and MARK not in text.replace(f"{MARK}p", "")


def test_attack_errors_do_not_quote_a_server_in_an_output_without_text(folder: Path, serve: Serve) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        prompt = body["messages"][-1]["content"]
        if "Shop 0" in prompt:
            return 400, {"error": {"message": f"content filter: {prompt[-200:]}", "code": "content_filter"}}
        yes = 0.5 + len(prompt) % 7 / 20
        return completion({MARK: 0.9} if "Shop 1" in prompt else {"yes": yes, "no": 1 - yes})

    engine = {"kind": "server", "base_url": serve(reply).url, "top_logprobs": 5, "retries": 0}
    settings = {"members": {"slms": [{"name": "served", "model": "m", "engine": engine}]}}
    for name, drop_text in (("full", False), ("bare", True)):
        job = make_job(merged(settings, {"output": {"drop_text": drop_text}, "runtime": {"max_error_share": 1.0}}))
        run_job(job, str(folder / "logs"), str(folder / name), QUIET)
    full, bare = ({row["row_id"]: row for row in read_rows(folder / name)} for name in ("full", "bare"))
    for name in ("r0", "r1"):
        assert full[name]["status"] == bare[name]["status"] == Status.NO_ANSWER
        assert MARK in full[name]["error"] and MARK not in bare[name]["error"]
    assert "HTTP 400" in bare["r0"]["error"] and bare["r2"]["error"] is None and bare["r2"]["status"] == Status.OK
    assert MARK not in read_all_text(folder / "bare")


def test_commands_that_need_text_are_refused(folder: Path) -> None:
    job = write_job(folder / "job.yaml", members={"slms": [], "detectors": DETECTORS}, output={"drop_text": True})
    write_logs(folder / "logs" / "dt=2" / "a.parquet", [{**row, "row_id": f"{row['row_id']}b"} for row in make_marked_rows(8)])
    assert invoke("run", folder / "logs", folder / "out", "--config", job).returncode == 0
    for command in (["review"], ["export", "--format", "messages"], ["export", "--format", "flagged"], ["explain"]):
        paths = [folder / "out", *([folder / "to.jsonl"] if command[0] == "export" else [])]
        fails(invoke(command[0], *paths, *command[1:]), "output.no-text")
    for reader in (["report"], ["evaluate", "--members"], ["drift"], ["finalize"]):
        done = invoke(reader[0], folder / "out", "--config", job, *reader[1:])
        assert done.returncode == 0, done.stderr
    compared = invoke("compare", folder / "out")
    assert compared.returncode == 0, compared.stderr
    assert MARK not in read_all_text(folder / "out")
    labels = folder / "r.jsonl"
    label_line = '{"row_id": "r%d", "partition": "dt=1", "label": "%s", "reviewer": "a", "at": "2026-11-20T10:00:00Z"}\n'
    labels.write_text("".join(label_line % (i, ("supported", "unsupported")[i % 2]) for i in range(8)))
    for command_name in ("estimate", "evaluate"):
        done = invoke(command_name, folder / "out", "--labels", labels)
        assert done.returncode == 0, done.stderr


def test_kept_columns_must_exist_and_a_cascade_needs_text(folder: Path) -> None:
    job = make_job({"members": {"slms": [], "detectors": DETECTORS}, "output": {"drop_text": {"keep": ["tenat"]}}})
    with raises("input.unknown-kept-column", columns="tenat") as error:
        run_job(job, str(folder / "logs"), str(folder / "out"), QUIET)
    assert "tenant" in error.value.fields["known"]
    no_new_rows = Logs("a table", pafs.LocalFileSystem(), [])
    assert select_passthrough(job.output, no_new_rows).names == []
    with refuses("config.judge-without-text"):
        make_job({"output": {"drop_text": True}, "escalation": {"judge": {"name": "judge"}, "share": 0.1}})
    assert (
        make_job({"output": {"drop_text": False}}).output.drop_text is None
        and make_job({"output": {"drop_text": True}}).output.drop_text is not None
    )


HIDE = """
import re
MAIL = re.compile(r"[\\w.]+@[\\w.]+\\w")
PHONE = re.compile(r"\\+?\\d[\\d ]{6,}\\d")

def texts(text):
    if "explode" in text:
        raise ValueError("can't hide " + text)
    if "missing file" in text:
        open("/no/such/file")
    return PHONE.sub("[phone]", MAIL.sub("[mail]", text))

def batch(all_of_them):
    return [texts(text) for text in all_of_them]

def nothing(text):
    return None

def shorter(many):
    return list(many)[1:]

CONSTANT = 3
"""


@pytest.mark.parametrize("function", ["texts", "batch"])
def test_texts_are_redacted_before_any_stage_reads_them(folder: Path, function: str) -> None:
    (folder / "hide_it.py").write_text(HIDE)
    secret = {
        "question": "Call +49 30 1234567?",
        "context": [{"text": "Write to bob@shop.example.", "id": "mails/eve@shop.example.eml"}, {"text": None, "id": None}],
        "response": "Call +49 30 1234567 now.",
    }
    rows = [
        *({**row, "row_id": f"r{i}", "context": [{"text": text, "id": f"id of fay{i}@shop.example"} for text in row["context"]],
           "response": f"{row['response']} Mail ann{i}@shop.example."} for i, row in enumerate(example_rows(4))),
        {**secret, "row_id": "secret", "tenant": "t"},
        {**secret, "row_id": "raises", "tenant": "t", "response": "Please explode carl@shop.example."},
        {**secret, "row_id": "opens", "tenant": "t", "response": "A missing file of dora@shop.example."},
        {**secret, "row_id": "id raises", "tenant": "t", "context": [{"text": "A.", "id": "explode gus"}]},
    ]  # fmt: skip
    write_logs(folder / "secret" / "a.parquet", rows)
    job = make_job(
        {
            "members": {"slms": [], "detectors": DETECTORS},
            "input": {"redact": f"hide_it:{function}"},
            "runtime": {"max_error_share": 1.0},
        }
    )
    run_job(job, str(folder / "secret"), str(folder / "out"), QUIET)
    text = read_all_text(folder / "out")
    assert not re.search(r"@shop|shop\.example|30 1234567|can't hide|carl|dora|eve|fay|gus", text) and "[mail]" in text
    rows_by_id = {row["row_id"]: row for row in read_rows(folder / "out")}
    assert len(rows_by_id) == len(rows)
    assert rows_by_id["secret"]["question"] == "Call [phone]?" and rows_by_id["secret"]["context"] == ["Write to [mail].", None]
    assert rows_by_id["secret"]["passage_ids"] == ["mails/[mail]", None]
    assert {evidence["passage_id"] for i in range(4) for evidence in rows_by_id[f"r{i}"]["evidence"]} >= {"id of [mail]"}
    for name in ("raises", "opens", "id raises"):
        row = rows_by_id[name]
        assert (row["status"], row["question"], row["context"], row["response"]) == ("error", None, None, None)
        assert row["passage_ids"] is None
        assert row["error"].startswith("redact: ")
    assert sum(row["status"] == "ok" for row in rows_by_id.values()) == 5
    first_identity = redaction_identity(f"hide_it:{function}")
    assert make_fingerprint(job)["redact"] == first_identity and first_identity["name"] == f"hide_it:{function}"
    (folder / "hide_it.py").write_text(HIDE + "# changed\n")
    assert redaction_identity(f"hide_it:{function}") != first_identity
    with raises("output.other-settings", settings=["input.redact.source"]):
        run_job(job, str(folder / "secret"), str(folder / "out"), QUIET)


def test_a_redaction_that_cannot_be_used_is_refused_before_the_run(folder: Path) -> None:
    (folder / "hide_wrong.py").write_text(HIDE)
    (folder / "hide_broken.py").write_text("import nothing_of_that_name\n")
    wrong = {
        "hide_nowhere:f": "config.redact-not-imported",
        "hide_broken:f": "config.redact-not-imported",
        "hide_wrong:f": "config.redact-no-function",
        "hide_wrong:CONSTANT": "config.redact-no-function",
        "hide_wrong:nothing": "config.redact-returns",
        "hide_wrong:shorter": "config.redact-returns",
    }
    for name, code in wrong.items():
        with raises(code):
            Redaction(name, str(folder)).function(["x"])
    job = make_job({"members": {"slms": [], "detectors": DETECTORS}, "input": {"redact": "hide_wrong:f"}})
    with raises("config.redact-no-function"):
        run_job(job, str(folder / "logs"), str(folder / "out"), QUIET)
    assert not (folder / "out" / "raw").exists()
    with refuses("input.redact"):
        make_job({"input": {"redact": "no function"}})
    assert len(find_logs(str(folder / "logs")).files) == 1
