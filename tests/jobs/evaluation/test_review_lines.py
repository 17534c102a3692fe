"""Labels from the review page's JSON Lines: what holds, of what, and what `evaluate` makes of them."""

import json
from pathlib import Path
from typing import Any

from ragassay.jobs.evaluation.evaluate import evaluate
from ragassay.jobs.evaluation.label_table import IS_RESPONSE, label_of_rows, load_labels, read_labels, truth_of_sentences
from ragassay.jobs.evaluation.labels import Label, LabelSource
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.storage.folder import open_folder
from tests.jobs.conftest import here, read_rows, resamples
from tests.raises import fails, raises

C, W = Label.CORRECT, Label.WRONG


def write(path: Path, *lines: dict[str, Any]) -> LabelSource:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return LabelSource("label", file=str(path))


def said(row_id: str, label: str, **more: Any) -> dict[str, Any]:
    return {"row_id": row_id, "label": label, "reviewer": "ana", "at": "2026-11-22T10:00:00Z", **more}


def labels_of(source: LabelSource) -> dict[str, Label | None]:
    said_of = read_labels(source).filter(IS_RESPONSE)
    return dict(zip(said_of["row_id"], said_of["label"], strict=True))


def test_a_response_has_its_own_label_or_that_of_its_sentences(scored: Path, tmp_path: Path) -> None:
    rows = [row for row in read_rows(scored) if row["status"] == "ok"]
    names = ("whole", "beside", "one", "all", "some", "nobody", "known", "stale")
    of = {name: row for name, row in zip(names, rows, strict=False)}

    def line(name: str, label: str, number: int | None = None) -> dict[str, Any]:
        row = of[name]
        place = {key: row["sentences"][number][key] for key in ("start", "end")} if number is not None else {}
        return said(row["row_id"], label, partition=f"dt={row['dt']}", **place)

    source = write(
        tmp_path / "r.jsonl",
        line("whole", "supported"),
        line("beside", "supported"),
        line("beside", "unsupported", 0),
        line("one", "unsupported", 0),
        line("all", "supported", 0),
        line("all", "supported", 1),
        line("some", "supported", 0),
        line("some", "unsure", 1),
        line("nobody", "unsure"),
        line("known", "unsure"),
        line("known", "supported", 0),
        line("known", "supported", 1),
        {**line("stale", "unsupported"), "start": 10**6, "end": 10**6 + 1},  # no sentence is there any more
    )
    labels = load_labels(open_scored(open_folder(str(scored))), source)
    found = label_of_rows(labels)
    expected = {"whole": C, "beside": C, "one": W, "all": C, "known": C, "stale": W}
    assert found == {of[name]["row_key"]: label for name, label in expected.items()}
    truth = truth_of_sentences(labels).filter(row_key=of["beside"]["row_key"])
    assert truth.select("sentence", "good").rows() == [(0, False)] and labels["row_key"].null_count() == 0


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
    assert labels_of(source) == {"a": C, "b": W, "c": C, "d": C}


def test_reviewers_who_differ_are_told_how_to_settle_it(tmp_path: Path) -> None:
    day = {"partition": "dt=2026-11-20"}
    lines = [
        said(row, label, reviewer=who, **day) for row in "ab" for who, label in (("ana", "supported"), ("ben", "unsupported"))
    ]
    with raises("labels.reviewers-disagree", reviewer="ana", label="supported", other="ben", other_label="unsupported"):
        read_labels(write(tmp_path / "r.jsonl", *lines))


def test_odd_files(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    source = LabelSource("label", file=str(path))
    with raises("labels.no-file"):
        read_labels(source)
    path.write_bytes(b"\xff\xfe{")
    with raises("labels.no-json-lines"):
        read_labels(source)
    path.write_text('{"row_id": "a", "label": "supported"}\n{"row_id": "b"', "utf-8")
    with raises("labels.wrong-line", line=2):
        read_labels(source)
    path.write_text('\ufeff{"row_id": "a\u2028\\u2029ü", "label": "unsupported"}\r\n\n  \n', "utf-8")
    assert labels_of(source) == {"a\u2028\u2029ü": W}
    path.write_text("", "utf-8")
    assert not labels_of(source)


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
    for command in (["evaluate"], ["calibrate", "--target", "supported-f1"], ["report"]):
        done = here(*command, scored, "--labels", file, *resamples(tmp_path, 20))
        assert done.returncode == 0, done.stderr
    assert "label: 30 correct, 60 wrong" in here("calibrate", scored, "--target", "supported-f1", "--labels", file).stdout
    done = here("evaluate", scored, "--labels", file, "--label", "hallucinated")
    fails(done, "options.labels-say-it")
    done = here("evaluate", scored, "--labels", str(tmp_path / "r.parquet"))
    fails(done, "options.labels-without-label")
