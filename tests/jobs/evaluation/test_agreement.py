"""`agreement`: kappa of two people's files, and the rows to talk about."""

import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from tests.jobs.conftest import here, read_rows
from tests.raises import fails

S, U, N = "supported", "unsupported", "unsure"


def write(path: Path, who: str | None, said: dict[str, str], **more: Any) -> Path:
    lines = [{"row_id": row, "label": label, **({"reviewer": who} if who else {}), **more} for row, label in said.items()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_kappa_and_rows_to_talk_about(scored: Path, tmp_path: Path) -> None:
    rows = [row for row in read_rows(scored) if row["status"] == "ok"][:12]
    ids = [row["row_id"] for row in rows]
    one = dict(zip(ids, [S, S, U, U, S, U, S, S, U, N, S, S], strict=True))
    two = dict(zip(ids, [S, U, U, U, S, S, S, S, U, U, N, S], strict=True))
    day = f"dt={rows[0]['dt']}"
    a, b = write(tmp_path / "a.jsonl", "ana", one, partition=day), write(tmp_path / "b.jsonl", "ben", two, partition=day)
    done = here("--log-format", "json", "agreement", a, b, "--output", scored, "--out", tmp_path / "talk.jsonl")
    assert done.returncode == 0, done.stderr
    sure = [(one[i], two[i]) for i in ids if N not in (one[i], two[i])]
    assert f"{cohen_kappa_score(*zip(*sure, strict=True)):.3f}" in done.stdout and "8 of 10, 80.0%" in done.stdout
    talk = [json.loads(line) for line in (tmp_path / "talk.jsonl").read_text().splitlines()]
    assert {row["row_id"] for row in talk} == {i for i in ids if one[i] != two[i]}
    response = {row["row_id"]: row["response"] for row in rows}
    assert all(row["said"] == {"ana": one[row["row_id"]], "ben": two[row["row_id"]]} for row in talk)
    assert all(row["text"] == response[row["row_id"]] and row["partition"] == day for row in talk)


def test_sentences_and_several_people(tmp_path: Path) -> None:
    place = {"start": 3, "end": 9}
    said = {"ana": S, "ben": S, "eve": U}
    files = [write(tmp_path / f"{who}.jsonl", who, {"x": label}, **place) for who, label in said.items()]
    done = here("agreement", *files, "--out", tmp_path / "talk.jsonl")
    assert done.returncode == 0 and all(pair in done.stdout for pair in ("ana       ben", "ana       eve", "ben       eve"))
    assert json.loads((tmp_path / "talk.jsonl").read_text()) == {"row_id": "x", **place, "said": said}


def test_one_name_in_two_files_is_told_apart(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.jsonl", None, {"x": S}), write(tmp_path / "b.jsonl", None, {"x": S})
    done = here("agreement", a, b)
    assert done.returncode == 0 and "undefined: one word only" in done.stdout and "a.jsonl" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a.jsonl"], "labels.one-reviewer"),
        (["empty.jsonl"], "labels.one-reviewer"),
        (["a.jsonl", "b.parquet"], "labels.no-review-lines"),
        (["a.jsonl", "b.jsonl", "--out", "a.jsonl"], "path.exists"),
        (["a.jsonl", "b.jsonl", "--out", "./a.jsonl"], "path.exists"),
        (["a.jsonl", "none.jsonl"], "labels.no-file"),
    ],
)
def test_what_is_no_pair_of_files(tmp_path: Path, arguments: list[str], code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", "ana", {"x": S})
    write(tmp_path / "b.jsonl", "ben", {"x": U})
    write(tmp_path / "empty.jsonl", "ben", {})
    before = (tmp_path / "a.jsonl").read_bytes()
    fails(here("agreement", *arguments), code)
    assert (tmp_path / "a.jsonl").read_bytes() == before


def test_another_output_is_refused(scored: Path, tmp_path: Path) -> None:
    a, b = (write(tmp_path / f"{who}.jsonl", who, {"elsewhere": label}) for who, label in (("ana", S), ("ben", U)))
    done = here("agreement", a, b, "--output", scored)
    fails(done, "labels.of-other-rows")
    done = here("agreement", a, b, "--out", scored / "scored" / "talk.jsonl", "--output", scored)
    fails(done, "output.file-inside")
