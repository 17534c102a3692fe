"""Conversations as rows: the last question, what tools said, the answer; in every shape that logs have."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.input.messages import can_be_messages, talk_of, talks, turns_of
from ragassay.jobs.output.fingerprint import fingerprint
from tests.conftest import write_logs
from tests.jobs.input.test_logs import load, rows_of
from tests.raises import refuses

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)
TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system", "critic"]), TEXT), max_size=7)
ROLES = ("tool", "system")
TALKS = Columns(messages="messages")


def of(*turns: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in turns]


def row(value: Any, roles: tuple[str, ...] = ROLES) -> tuple[Any, ...]:
    array = pa.array([json.dumps(value)]) if not isinstance(value, pa.Array) else value
    found = talks(array, roles)
    assert not found.no_talk
    return tuple(column[0].as_py() for column in (found.question, found.context, found.response, found.ids))


@given(TURNS)
def test_the_last_question_and_what_is_said_behind_it(turns: list[tuple[str, str]]) -> None:
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    shapes = [pa.array([json.dumps(of(*turns))]), pa.array([of(*turns)], kind), pa.array([[json.dumps(t) for t in of(*turns)]])]
    question, context, response, _ = row(shapes[0])
    assert all(row(shape) == (question, context, response, None) for shape in shapes[1 : 3 if turns else 2])
    places = [i for i, (role, _) in enumerate(turns) if role == "user"]
    last = places[-1] if places else -1
    assert question == (turns[last][1] if places else None)
    said = [i for i, (role, _) in enumerate(turns) if role == "assistant" and i > last]
    assert response == (turns[said[-1]][1] if said else None)
    before = turns[: said[-1]] if said else turns
    tools, systems = ([text for role, text in before if role == name] for name in ROLES)
    if not any(text.lstrip()[:1] in "[{" for text in tools):
        assert context == (tools or systems or None)


def test_content_in_parts_and_what_tools_are_called() -> None:
    talk = of(
        ("system", "Be brief."),
        (
            "user",
            [
                {"type": "text", "text": "When is it"},
                {"type": "image_url", "image_url": {"url": "x"}},
                {"type": "text", "text": "open?"},
            ],
        ),
        ("assistant", None),
        ("tool", json.dumps([{"id": "d1", "text": "It opens at nine."}, {"id": "d2", "text": "Closed on Sunday."}])),
        ("assistant", [{"type": "text", "text": "At nine."}]),
    )
    wanted = ("When is it\nopen?", ["It opens at nine.", "Closed on Sunday."], "At nine.", ["d1", "d2"])
    assert row(talk) == wanted
    assert row(talk, ("system",)) == (wanted[0], ["Be brief."], "At nine.", None)
    assert row({"messages": talk}) == wanted


def test_tools_that_answer_within_a_user_turn() -> None:
    talk = of(
        ("user", "Open?"),
        ("assistant", [{"type": "tool_use", "name": "search", "input": {}}]),
        ("user", [{"type": "tool_result", "content": [{"type": "text", "text": "It opens at nine."}]}]),
        ("assistant", [{"type": "text", "text": "Yes, at nine."}]),
    )
    assert row(talk) == ("Open?", ["It opens at nine."], "Yes, at nine.", None)


def test_messages_of_other_libraries() -> None:
    langchain = [
        {"type": "human", "data": {"content": "Open?"}},
        {"lc": 1, "id": ["langchain", "schema", "messages", "ToolMessage"], "kwargs": {"content": "At nine.", "type": "tool"}},
        {"id": ["langchain_core", "messages", "AIMessage"], "kwargs": {"content": "Nine."}},
    ]
    assert row(langchain) == ("Open?", ["At nine."], "Nine.", None)
    sharegpt = [{"from": "human", "value": "Open?"}, {"from": "gpt", "value": "Nine."}]
    assert row(sharegpt) == ("Open?", None, "Nine.", None)
    responses = [
        *of(("user", "Open?")),
        {"type": "function_call", "name": "f"},
        {"type": "function_call_output", "output": "At nine."},
    ]
    assert row([*responses, *of(("assistant", [{"type": "output_text", "text": "Nine."}]))]) == (
        "Open?",
        ["At nine."],
        "Nine.",
        None,
    )
    assert talk_of(turns_of(of(("developer", "Facts."), ("user", "Q?"), ("assistant", "A.")))).documents


def test_a_whole_file_of_conversations(tmp_path: Path) -> None:
    good = of(("tool", "It opens at nine."), ("user", "When?"), ("assistant", "At nine."))
    texts = [json.dumps(good), "no JSON", '[{"role": "us', None, "[]", json.dumps([{"content": "x"}]), json.dumps(good[:2])]
    write_logs(tmp_path / "a.parquet", [{"messages": text, "question": "mine", "id": i} for i, text in enumerate(texts)])
    rows = rows_of(load(tmp_path, TALKS), TALKS)
    assert [r["status"] for r in rows] == ["ok", "unreadable", "unreadable", "ok", "ok", "unreadable", "ok"]
    assert (
        rows[0]["context"] == ["It opens at nine."]
        and rows[0]["input_question"] == "mine"
        and rows[0]["response"] == "At nine."
    )
    assert "'messages' holds no messages" in rows[1]["error"] and [rows[i]["context"] for i in (1, 2)] == [
        ["no JSON"],
        [texts[2]],
    ]
    assert rows[3]["question"] is rows[3]["context"] is rows[4]["response"] is rows[6]["response"] is None


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    parts = pa.StructArray.from_arrays([pa.array(["user", "assistant"]), pa.array([b"caf\xe9?", b"Yes."])], ["role", "content"])
    table = pa.table({"messages": pa.ListArray.from_arrays([0, 2], parts), "x": [1]})
    write_logs(tmp_path / "a.parquet", table.to_pylist())
    (found,) = rows_of(load(tmp_path, TALKS), TALKS)
    assert (found["status"], found["question"], found["response"]) == ("unreadable", "caf\\xe9?", "Yes.")


def test_settings_that_do_not_go_together(tmp_path: Path) -> None:
    for wrong in (
        {"messages": "m", "question": "q"},
        {"passage_roles": ["system"]},
        {"messages": "row_id"},
        {"messages": "m", "passage_roles": []},
    ):
        with pytest.raises(ValidationError):
            Columns.model_validate(wrong)
    with refuses("config.messages-and-columns"):
        make_job({"input": {"columns": {"messages": "m", "question": "q"}}})
    write_logs(tmp_path / "a.parquet", [{"messages": 3}])
    with refuses("input.column-shape") as error:
        load(tmp_path, TALKS)
    assert error.value.fields["faults"][0]["setting"] == "messages"
    assert not can_be_messages(pa.list_(pa.struct([("text", pa.string())])))


def test_folders_of_before_know_of_no_conversations() -> None:
    before = {"question": "question", "context": "context", "response": "response", "row_id": "row_id"}
    assert fingerprint(Job())["columns"] == before
    now = fingerprint(make_job({"input": {"columns": {"messages": "m"}}}))["columns"]
    assert now == {"messages": "m", "passage_roles": ["tool", "system"], "row_id": "row_id"}


def test_parts_beside_texts_in_json_lines_are_parts(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Where?"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    found = [{"type": "tool_result", "content": [{"type": "text", "text": "In Bonn."}]}]
    talk = of(("user", parts), ("user", found), ("assistant", "Bonn."))
    (tmp_path / "a.jsonl").write_text(json.dumps({"row_id": "1", "messages": talk}) + "\n")
    (out,) = rows_of(load(tmp_path, TALKS), TALKS)
    assert (out["question"], out["context"], out["response"]) == ("Where?", ["In Bonn."], "Bonn.")


@pytest.mark.parametrize("text", ["[]", '[{"type": "Document", "page_content": "A."}]', '[{"type": 1}]', '[{"type": "text"'])
def test_other_json_that_is_said_stays_what_is_said(text: str) -> None:
    assert talk_of(turns_of(of(("user", text)))).question == text


def test_documents_that_are_called_texts_keep_their_ids() -> None:
    tool = json.dumps([{"type": "text", "text": "A.", "id": "x"}, {"type": "text", "text": "B.", "id": "y"}])
    assert row(of(("user", "Q?"), ("tool", tool), ("assistant", "A.")))[1:] == (["A.", "B."], "A.", ["x", "y"])


@pytest.mark.parametrize(("beside", "opened"), [({"query": "Q", "total": 1}, True), ({}, True), ({"text": "summary"}, False)])
def test_a_tools_documents_beside_a_text_of_its_own_are_one_text(beside: dict[str, Any], opened: bool) -> None:
    tool = json.dumps({"documents": [{"text": "A."}], **beside})
    assert row(of(("user", "Q?"), ("tool", tool), ("assistant", "A.")))[1] == (["A."] if opened else [tool])
