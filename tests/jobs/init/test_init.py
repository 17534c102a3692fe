"""`init`: columns are found under any of their usual names, and the file that it writes is a job that reads the logs."""

import json
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns, InputConfig
from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.job_text import parse
from ragassay.jobs.init.choices import Choice, choose_columns
from ragassay.jobs.init.columns import Column
from ragassay.jobs.init.findings import Findings, look_at_logs
from ragassay.jobs.init.names import SYNONYMS, Role, rate_name, show
from ragassay.jobs.init.run import Machine, render_job
from ragassay.jobs.input import check_logs, find_logs
from ragassay.schemas.manifest import FitRecord, Manifest
from tests.conftest import HANDBOOK, REPO, example_rows, write_logs
from tests.jobs.conftest import here, read_rows, resamples
from tests.raises import raises

DATA = REPO.parent / "shared" / "data"
ROWS = example_rows(40)
SMALL, LARGE = Machine(2, 24.0), Machine(16, 128.0, (139.8, 139.8))


def renamed(names: dict[str, str], rows: list[dict[str, Any]] = ROWS, **more: Any) -> list[dict[str, Any]]:
    return [{**{names.get(key, key): value for key, value in row.items()}, **more} for row in rows]


def started(tmp_path: Path, rows: list[dict[str, Any]] | pa.Table) -> tuple[str, Job]:
    """What `init` says of logs, and the job that it wrote for them."""
    logs = tmp_path / "logs" / "a.parquet"
    if isinstance(rows, pa.Table):
        logs.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, logs)
    else:
        write_logs(logs, rows)
    done = here("init", logs, "--out", tmp_path / "job.yaml")
    assert done.returncode == 0, done.stderr
    return done.stdout, load_job(str(tmp_path / "job.yaml"))


def test_no_name_is_in_two_lists() -> None:
    names = [name for synonyms in SYNONYMS.values() for name in synonyms]
    assert len(set(names)) == len(names)
    for role, synonyms in SYNONYMS.items():
        for name in synonyms:
            assert max(Role, key=lambda other, name=name: rate_name(name, other)) is role  # type: ignore[misc]


def written(words: str, style: str) -> str:
    parts = words.split("_")
    return {
        "snake": words, "upper": words.upper(), "spaced": " ".join(parts), "title": " ".join(map(str.title, parts)),
        "camel": parts[0] + "".join(map(str.title, parts[1:])), "dotted": f"log.{'.'.join(parts)}",
    }[style]  # fmt: skip


STYLES = st.sampled_from(["snake", "upper", "spaced", "title", "camel", "dotted"])
OTHERS = {
    "user_id": ["u"] * 40, "created_at": ["2026-11-02 10:00"] * 40, "model_name": ["m-1"] * 40, 
    "ground_truth": [r["response"] for r in ROWS],
    "comment": [f"Some words of a person about row {i}." for i in range(40)], "system_prompt": ["You are kind."] * 40,
}  # fmt: skip


@given(
    st.tuples(*(st.sampled_from(SYNONYMS[role]) for role in Role)),
    st.tuples(STYLES, STYLES, STYLES),
    st.randoms(),
    st.booleans(),
)
def test_any_synonyms_in_any_order_are_found(words: tuple[str, ...], styles: tuple[str, ...], random: Any, empty: bool) -> None:
    names = {role: written(word, style) for role, word, style in zip(Role, words, styles, strict=True)}
    texts = {name: values for name, values in OTHERS.items() if name not in names.values()}
    columns = [
        Column(names[role], "string", text=role is not Role.CONTEXT, passages=True, lists=role is Role.CONTEXT, values=values)
        for role, values in ((role, [] if empty else [row[role.value] for row in ROWS]) for role in Role)
    ]
    columns += [Column(name, "string", text=True, passages=True, values=[] if empty else v) for name, v in texts.items()]
    random.shuffle(columns)
    assert {role: taken.column for role, taken in choose_columns(columns).items()} == names


@given(
    st.lists(
        st.tuples(st.text(max_size=12), st.lists(st.none() | st.text(max_size=30), min_size=3, max_size=3)),
        unique_by=lambda c: c[0],
    )
)
def test_no_column_is_ever_taken_twice(given_: list[tuple[str, list[str | None]]]) -> None:
    columns = [Column(name, "string", text=True, passages=True, values=values) for name, values in given_]
    taken = [one.column for one in choose_columns(columns).values()]
    assert len(set(taken)) == len(taken)


@cache
def handbook() -> Findings:
    return look_at_logs(str(HANDBOOK))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_comes_back_from_yaml_and_breaks_no_comment(name: str) -> None:
    choice = Choice("question", name, [f"{show(name)} is what was found"], [f"{show(name)} {show(name)}"])
    found = replace(handbook(), choices=[choice], key=name, slices=[name], labels={name: False}, doubts=[f"{show(name)} too"])
    assert parse(render_job(found, SMALL)) == {"input": {"columns": {"question": name}}}


def test_renamed_logs(tmp_path: Path) -> None:
    rows = [
        {**row, "Request ID": f"r{i}", "is_hallucinated": i % 3 == 0}
        for i, row in enumerate(renamed({"question": "User Query", "context": "retrieved.docs", "response": "LLMAnswer"}))
    ]
    said_, job = started(tmp_path, rows)
    assert job.input.columns == Columns(
        question="User Query", context="retrieved.docs", response="LLMAnswer", row_id="Request ID"
    )
    assert job == Job(input=InputConfig(columns=job.input.columns))  # nothing else is set
    assert "slices     `tenant`" in said_ and "labels     `is_hallucinated`" in said_
    assert "the context has 90% of the response's words" in said_
    (command,) = (line for line in said_.splitlines() if line.startswith("what it takes"))
    assert shlex.split(command)[3:] == [
        "ragassay",
        "plan",
        str(tmp_path / "logs" / "a.parquet"),
        "--config",
        str(tmp_path / "job.yaml"),
    ]


def test_names_that_say_nothing_are_told_by_what_stands_in_them(tmp_path: Path) -> None:
    told, job = started(tmp_path, renamed({"question": "frage", "context": "quellen", "response": "text"}, ort="Ulm"))
    assert (job.input.columns.question, job.input.columns.context, job.input.columns.response) == ("frage", "quellen", "text")
    assert told.count("its name does not say that it is the") == 3
    assert "IN DOUBT: its name does not say" in (tmp_path / "job.yaml").read_text()


def test_several_that_could_be_it_are_named(tmp_path: Path) -> None:
    rows = [{**row, "answer": "Something else was said here.", "query": row["question"]} for row in ROWS]
    told, job = started(tmp_path, rows)
    assert (job.input.columns.question, job.input.columns.response) == ("question", "response")
    assert "could be `answer` too" in told and "could be `query` too" in told


def row_id(found: Findings) -> str | None:
    return next(choice.column for choice in found.choices if choice.key == "row_id")


def test_ids_have_to_be_unique_in_all_files(tmp_path: Path) -> None:
    rows = [{**row, "request_id": i, "trace_id": f"t{i}"} for i, row in enumerate(ROWS)]
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", rows)
    write_logs(tmp_path / "logs" / "dt=2" / "a.parquet", [{**row, "trace_id": f"u{i}"} for i, row in enumerate(rows)])
    found = look_at_logs(str(tmp_path / "logs"))
    assert (row_id(found), found.key, sum(file.rows or 0 for file in found.files.files)) == ("trace_id", "dt", 80)
    write_logs(tmp_path / "logs" / "dt=3" / "a.parquet", rows)
    assert row_id(look_at_logs(str(tmp_path / "logs"))) is None


def test_without_a_question_detectors_judge(tmp_path: Path) -> None:
    rows = [{"evidence": row["context"], "claim": row["response"]} for row in ROWS]
    told, job = started(tmp_path, rows)
    assert (job.input.columns.context, job.input.columns.response) == ("evidence", "claim")
    assert (
        not job.members.slms
        and [d.name for d in job.members.detectors] == ["entities", "attribution", "novelty"]
        and not job.members.need_question
    )
    assert "detectors alone" in told
    _, blank = started(tmp_path / "blank", [{**row, "query": " "} for row in rows])
    assert blank.input.columns.question == "query" and not blank.members.slms


def test_contexts_as_json_and_as_structs(tmp_path: Path) -> None:
    told, job = started(tmp_path, [{**row, "context": json.dumps(row["context"])} for row in ROWS])
    assert job.input.columns.context == "context" and "passages as JSON" in told and "plain text" not in told
    told, job = started(tmp_path / "other", [{**row, "context": json.dumps({"rows": row["context"]})} for row in ROWS])
    assert job.input.columns.context == "context" and "it holds JSON, which is read as plain text" in told
    rows = [
        {"query": r["question"], "docs": [{"text": t, "id": "x"} for t in r["context"]], "answer": r["response"]} for r in ROWS
    ]
    told, job = started(tmp_path / "structs", rows)
    assert job.input.columns == Columns(question="query", context="docs", response="answer", row_id=None)
    assert "lists of 2.0 texts" in told and "the context has" in told


@pytest.mark.parametrize("as_json", [True, False])
def test_conversations(tmp_path: Path, as_json: bool) -> None:
    talks = [
        [
            {"role": "user", "content": row["question"]},
            {"role": "tool", "content": "\n".join(row["context"])},
            {"role": "assistant", "content": row["response"]},
        ]
        for row in ROWS
    ]
    rows = [{"messages": json.dumps(talk) if as_json else talk, "request_id": f"r{i}"} for i, talk in enumerate(talks)]
    told, job = started(tmp_path, rows)
    assert job.input.columns == Columns(messages="messages", row_id="request_id") and job.members.slms
    assert "100% have passages in tool or system turns" in told and "in doubt" not in told
    few = [{"chat": [turn for turn in talk if turn["role"] != "tool"]} for talk in talks]
    told, job = started(tmp_path / "few", few)
    assert job.input.columns == Columns(messages="chat", row_id=None) and "input.columns.passage_roles" in told
    both = [{**row, "messages": talk} for row, talk in zip(ROWS, talks, strict=True)]
    told, job = started(tmp_path / "both", both)
    assert job.input.columns.messages is None and "`input: {columns: {messages: …}}` reads them" in told


@pytest.mark.parametrize(
    ("rows", "roles", "columns", "note"),
    [
        ([{"city": "Ulm", "n": i} for i in range(30)], "context or as response", {"city": "string", "n": "int64"}, ""),
        (
            [{"query": r["question"], "docs": r["context"]} for r in ROWS],
            "response", {"query": "string", "docs": "list<element: string>"}, "",
        ),
        (
            [{"messages": [{"role": "user", "content": r["question"]}], "documents": r["context"]} for r in ROWS],
            "response",
            {"messages": "list<element: struct<role: string, content: string>>", "documents": "list<element: string>"},
            "`messages` (list<element: struct<",
        ),
        (
            [{"query": r["question"], "docs": [{"title": t} for t in r["context"]], "answer": r["response"]} for r in ROWS],
            "context", {"query": "string", "docs": "list<element: struct<title: string>>", "answer": "string"},
            "`docs` (list<element: struct<title: string>>)",
        ),
    ],
    ids=["nothing", "no response", "messages", "structs"],
)  # fmt: skip
def test_where_nothing_fits_the_columns_are_listed(
    tmp_path: Path, rows: list[dict[str, Any]], roles: str, columns: dict[str, str], note: str
) -> None:
    logs = write_logs(tmp_path / "logs" / "a.parquet", rows)
    with raises("init.no-column-fits", uri=str(logs), roles=roles) as info:
        look_at_logs(str(logs))
    lines = info.value.fields["lines"]
    assert all(f"`{name}`: {kind}" in lines for name, kind in columns.items()) and note in lines
    done = here("init", logs, "--out", tmp_path / "job.yaml")
    assert done.returncode == 1 and "error[init.no-column-fits]" in done.stderr and not (tmp_path / "job.yaml").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "a.parquet", ROWS)
    there = tmp_path / "job.yaml"
    there.write_text("mine")
    done = here("init", logs, "--out", there)
    assert done.returncode == 1 and "error[init.file-exists]" in done.stderr and there.read_text() == "mine"
    (tmp_path / "link.yaml").symlink_to(tmp_path / "nowhere.yaml")
    assert here("init", logs, "--out", tmp_path / "link.yaml").returncode == 1 and not (tmp_path / "nowhere.yaml").exists()
    gone = here("init", logs, "--out", tmp_path / "no" / "job.yaml")
    assert gone.returncode == 1 and "error[init.no-folder]" in gone.stderr


def test_what_a_run_would_refuse_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "a.parquet", renamed({}, extra=1))
    write_logs(tmp_path / "logs" / "b.parquet", renamed({}, extra="x"))
    done = here("init", tmp_path / "logs", "--out", tmp_path / "job.yaml")
    assert done.returncode == 1 and "error[input.mixed-types]: " in done.stderr and not (tmp_path / "job.yaml").exists()
    (tmp_path / "bad.parquet").write_bytes(b"none")
    with raises("init.no-readable-file", uri=str(tmp_path / "bad.parquet"), files=1):
        look_at_logs(str(tmp_path / "bad.parquet"))
    done = here("init", tmp_path / "bad.parquet", "--out", tmp_path / "job.yaml")
    assert done.returncode == 1 and "error[init.no-readable-file]" in done.stderr


def test_mixed_files(tmp_path: Path) -> None:
    """Passages in one file and one text in the other; a question of two names; a file without rows; one that is none."""
    write_logs(tmp_path / "a.parquet", renamed({"context": "docs", "question": "query"}))
    write_logs(tmp_path / "b.parquet", [{**row, "docs": "\n".join(row.pop("context"))} for row in map(dict, ROWS)])
    pq.write_table(pq.read_table(tmp_path / "a.parquet").slice(0, 0), tmp_path / "c.parquet")
    (tmp_path / "d.parquet").write_bytes(b"none")
    done = here("init", tmp_path, "--out", tmp_path / "job.yaml")
    assert done.returncode == 0, done.stderr
    assert "1 file(s) can't be read" in done.stdout and "`query` (string) is not in all files" in done.stdout
    job = load_job(str(tmp_path / "job.yaml"))
    assert job.input.columns.context == "docs" and not job.members.slms


def test_times_that_python_has_not_are_no_hindrance(tmp_path: Path) -> None:
    rows = example_rows(20)
    table = pa.Table.from_pylist(rows).append_column("at", pa.array([1 << 62] * len(rows), pa.timestamp("us")))
    _, job = started(tmp_path, table.append_column("day", pa.array([1 << 30] * len(rows), pa.int32()).cast(pa.date32())))
    assert job.input.columns.context == "context"


def test_logs_without_rows_go_by_names_and_types(tmp_path: Path) -> None:
    table = pa.table(
        {"query": pa.array([], pa.string()), "docs": pa.array([], pa.list_(pa.string())), "answer": pa.array([], pa.string())}
    )
    told, job = started(tmp_path, table)
    assert "There is no row to look at yet" in told and job.input.columns.context == "docs" and job.members.slms


@pytest.mark.parametrize("machine", [SMALL, LARGE, Machine(1, 3.0), Machine(8, 32.0, (), 2), Machine(4, 64.0, (16.0,) * 8)])
def test_every_machine_gets_a_job_that_fits_it(tmp_path: Path, machine: Machine) -> None:
    text = render_job(look_at_logs(str(write_logs(tmp_path / "a.parquet", ROWS))), machine)
    job = make_job(parse(text))
    default = Job()
    assert job.members.names == default.members.names
    assert job.members.ensemble_weights == default.members.ensemble_weights
    (slm,) = job.members.slms
    pool = slm.replicas
    assert pool.max == max(1, 4 * len(machine.gpus)) and pool.max * pool.num_gpus == len(machine.gpus)
    assert pool.max * pool.num_cpus <= max(machine.cores, 1) and all(len(line) <= 128 for line in text.splitlines())
    if machine.gpus:
        settings = slm.engine.model_dump()
        assert 4 * settings["gpu_memory_utilization"] < 1
        assert settings["kv_cache_gib"] < settings["gpu_memory_utilization"] * min(machine.gpus)
    assert ("# IN DOUBT:" in text) == (machine.memory < 6 or machine.unused_gpus > 0)


def test_the_settings_in_comments_are_settings(tmp_path: Path) -> None:
    lines = render_job(look_at_logs(str(write_logs(tmp_path / "dt=1" / "a.parquet", ROWS))), SMALL).splitlines()
    settings = [
        line[2:] for line in lines if re.match(rf"# ({'|'.join(Job.model_fields)}):|#   +(- \{{|[a-z]+: ?[\[{{a-z ])", line)
    ]
    starts = [number for number, line in enumerate(settings) if not line.startswith(" ")]
    parts = ["\n".join(settings[a:b]) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    jobs = [make_job(parse(part)) for part in parts]
    given = [
        (section, key) for job in jobs for section in job.model_fields_set for key in getattr(job, section).model_fields_set
    ]
    assert sorted(given) == [
        ("members", "detectors"), ("members", "slms"), ("members", "slms"), ("splitting", "language"),
        ("splitting", "pipeline"), ("verdict", "calibration"), ("verdict", "history"), ("verdict", "threshold"),
    ]  # fmt: skip
    text = "\n".join(line.replace("  # on_bad_file", "  on_bad_file") for line in lines)
    assert make_job(parse(text)).input.skips_bad_files


@pytest.mark.parametrize("name", ["fever_dev", "ragtruth_qa_dev"])
def test_public_logs_under_other_names(tmp_path: Path, name: str) -> None:
    source = DATA / f"{name}.parquet"
    if not source.exists():
        pytest.skip(f"{source} is not here")
    names = {"id": "uuid", "question": "prompt", "context": "evidence", "response": "claim"}
    table = pq.read_table(source)
    told, job = started(tmp_path, table.rename_columns([names.get(c, c) for c in table.column_names]))
    assert job.input.columns == Columns(question="prompt", context="evidence", response="claim", row_id="uuid")
    assert "`label`, `hallucinated`" in told
    assert bool(job.members.slms) == (name != "fever_dev")  # its claims answer no question
    logs = find_logs(str(tmp_path / "logs"))
    check_logs(logs, job.input.columns, job.members.need_question)


@pytest.mark.slow
@pytest.mark.usefixtures("without_ray")
def test_a_job_from_an_init_file_runs(tmp_path: Path) -> None:
    names = {"question": 'Query: "text"', "context": "docs #1", "response": "it's.answer"}
    rows = [{**row, "uuid": f"u{i}", "label": "correct" if i % 2 else "wrong"} for i, row in enumerate(renamed(names))]
    logs = write_logs(tmp_path / "my logs" / "dt=2026-11-02" / "a.parquet", rows).parent.parent
    done = here("init", logs, "--out", tmp_path / "job.yaml")
    assert done.returncode == 0 and f"'{logs}'" in done.stdout
    detectors = "\nmembers: {slms: [], detectors: [{name: entities, kind: entities}, {name: novelty, kind: novelty}]}\n"
    (tmp_path / "fast.yaml").write_text((tmp_path / "job.yaml").read_text() + detectors)
    ran = here("run", logs, tmp_path / "audit", "--config", tmp_path / "fast.yaml")
    assert ran.returncode == 0, ran.stderr
    scored = read_rows(tmp_path / "audit")
    assert {row["row_id"] for row in scored} == {f"u{i}" for i in range(40)} and {row["status"] for row in scored} == {"ok"}
    fit = Manifest.from_json((tmp_path / "audit" / "manifest.json").read_text()).last_fit
    assert isinstance(fit, FitRecord) and set(fit.members) == {"entities", "novelty"}
    judged = here("evaluate", tmp_path / "audit", "--label", "label", *resamples(tmp_path, 20))
    assert judged.returncode == 0 and len(judged.stdout.splitlines()) <= 10
