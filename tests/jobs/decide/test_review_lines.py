"""Labels from the review page's JSON Lines: what holds, of what, and what `evaluate` makes of them."""

import json
from pathlib import Path
from typing import Any

from ragassay.jobs.decide.evaluate import evaluate
from ragassay.jobs.decide.labels import Label, LabelSource, read_reviewed
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.storage import open_folder
from tests.jobs.conftest import here, read_rows
from tests.raises import fails, raises

C, W = Label.CORRECT, Label.WRONG
FIRST, SECOND = {"start": 0, "end": 10}, {"start": 11, "end": 20}


def write(path: Path, *lines: dict[str, Any]) -> LabelSource:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return LabelSource("label", file=str(path))


def said(row_id: str, label: str, **more: Any) -> dict[str, Any]:
    return {"row_id": row_id, "label": label, "reviewer": "ana", "at": "2026-11-22T10:00:00Z", **more}


def test_responses_and_sentences_in_one_file(tmp_path: Path) -> None:
    source = write(
        tmp_path / "r.jsonl",
        said("whole", "supported"),
        said("beside", "supported"),
        said("beside", "unsupported", **FIRST),
        said("one", "unsupported", **FIRST),
        said("all", "supported", **FIRST),
        said("all", "supported", **SECOND),
        said("some", "supported", **FIRST),
        said("some", "unsure", **SECOND),
        said("nobody", "unsure"),
    )
    got = read_reviewed(source)
    two = [FIRST, SECOND]
    labels = {row: got.label((None, row), two) for row in ("whole", "beside", "one", "all", "some", "nobody", "other")}
    assert labels == {"whole": C, "beside": C, "one": W, "all": C, "some": None, "nobody": None, "other": None}
    assert got.label((None, "some"), [FIRST]) == C  # the output has no other sentence
    assert got.label((None, "all"), None) is None  # the row has none any more
    assert got.sentences[None, "beside"] == [{**FIRST, "supported": False}]


def test_the_later_word_holds(tmp_path: Path) -> None:
    early, late = {"at": "2026-11-22T10:00:00+02:00"}, {"at": "2026-11-22T09:00:00Z"}
    source = write(
        tmp_path / "r.jsonl",
        said("a", "supported", **late),
        said("a", "unsupported", **early),
        said("b", "supported"),
        said("b", "unsupported"),  # of the same time
        {"row_id": "c", "label": "unsupported"},
        {"row_id": "c", "label": "supported"},
        said("d", "supported"),
        said("d", "unsure", reviewer="ben"),
    )
    assert read_reviewed(source).responses == {(None, "a"): C, (None, "b"): W, (None, "c"): C, (None, "d"): C}


def test_reviewers_who_differ_are_told_how_to_settle_it(tmp_path: Path) -> None:
    day = {"partition": "dt=2026-11-20"}
    lines = [
        said(row, label, reviewer=who, **day) for row in "ab" for who, label in (("ana", "supported"), ("ben", "unsupported"))
    ]
    with raises("labels.reviewers-disagree", reviewer="ana", label="supported", other="ben", other_label="unsupported"):
        read_reviewed(write(tmp_path / "r.jsonl", *lines))


def test_odd_files(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    source = LabelSource("label", file=str(path))
    with raises("labels.no-file"):
        read_reviewed(source)
    path.write_bytes(b"\xff\xfe{")
    with raises("labels.no-json-lines"):
        read_reviewed(source)
    path.write_text('{"row_id": "a", "label": "supported"}\n{"row_id": "b"', "utf-8")
    with raises("labels.wrong-line", line=2):
        read_reviewed(source)
    path.write_text('\ufeff{"row_id": "a\u2028\\u2029ü", "label": "unsupported"}\r\n\n  \n', "utf-8")
    assert read_reviewed(source).responses == {(None, "a\u2028\u2029ü"): W}
    path.write_text("", "utf-8")
    assert not read_reviewed(source).responses


def of_output(output: Path, count: int) -> list[dict[str, Any]]:
    """Every second response by itself, the others by their sentences, as the logs' labels have them."""
    lines = []
    for number, row in enumerate([row for row in read_rows(output) if row["status"] == "ok"][:count]):
        place = {"partition": f"dt={row['dt']}"}
        if number % 2:
            lines.append(said(row["row_id"], "supported" if row["label"] == "correct" else "unsupported", **place))
            continue
        bad = {(span["start"], span["end"]) for span in row["spans"]}
        for s in row["sentences"]:
            label = "unsupported" if (s["start"], s["end"]) in bad else "supported"
            lines.append(said(row["row_id"], label, start=s["start"], end=s["end"], **place))
    return lines


def test_evaluate_reads_them(scored: Path, tmp_path: Path) -> None:
    lines = of_output(scored, 90)
    source = write(tmp_path / "r.jsonl", *lines, said("nowhere", "supported"), said("r0", "unsure", partition="dt=1999-01-01"))
    folder = open_folder(str(scored))
    got = evaluate(folder, read_manifest(folder), source, resamples=0)
    assert got.labels == {"correct": 30, "wrong": 60} and got.unmatched == 1
    assert got.sentences is not None and got.sentences.good + got.sentences.bad == 90  # two of every second response
    assert got.unlabelled == len(read_rows(scored)) - 90


def test_commands_read_them(scored: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "r.jsonl")
    write(tmp_path / "r.jsonl", *of_output(scored, 90))
    for command in (["evaluate"], ["calibrate", "--target", "f1"], ["report"]):
        done = here(*command, scored, "--labels", file, *(["--resamples", "20"] if command[0] != "calibrate" else []))
        assert done.returncode == 0, done.stderr
    assert "label: 30 correct, 60 wrong" in here("calibrate", scored, "--target", "f1", "--labels", file).stdout
    done = here("evaluate", scored, "--labels", file, "--label", "hallucinated")
    fails(done, "options.labels-say-it")
    done = here("evaluate", scored, "--labels", str(tmp_path / "r.parquet"))
    fails(done, "options.labels-without-label")
