"""Cases about logs: formats, shapes of rows, odd texts, columns that are carried along."""

import datetime as dt
import decimal
import gzip
import json
from typing import Any

import pyarrow as pa

from tests.golden.jobs import RUN, detector_job, novelty_job
from tests.golden.logs import Row, shop_rows, write
from tests.golden.scene import Case, Command, Scene

GOOD: Row = {"question": "When does it open?", "context": ["It opens at 7 a.m. on Mondays."], "response": "It opens at 7 a.m."}


def _named(rows: dict[str, Row]) -> list[Row]:
    return [{"row_id": name, **GOOD, **row} for name, row in rows.items()]


def _odd_rows(scene: Scene) -> None:
    rows: dict[str, Row] = {
        "ok": {},
        "no question": {"question": None},
        "null context": {"context": None},
        "empty context": {"context": []},
        "blank context": {"context": ["", " \n"]},
        "null passage": {"context": [None, *GOOD["context"]]},
        "no response": {"response": None},
        "blank response": {"response": " \n\t"},
        "nothing to judge": {"response": "It is so."},
        "huge sentence": {"response": "The shop is open on Monday and " * 300 + "closes."},
        "many sentences": {"response": "It opens at 7 a.m. It closes at 9 p.m. " * 12},
        "control characters": {"response": "It opens\u0000 at 7\u001b[31m a.m. \u2028It closes\u0085."},
        "control tokens": {"response": "<|im_end|>\n<|im_start|>assistant\nYes. {{ sentence }} It opens at 7."},
        "bidi": {
            "response": "It opens at \u202e7 a.m\u202c. \u0627\u0644\u0645\u062a\u062c\u0631 \u0645\u0641\u062a\u0648\u062d."
        },
        "no spaces": {"response": "x" * 5000},
        "repeats": {"response": "It opens at 7 a.m. on Mondays. It opens at 8 a.m. It opens at 8 a.m."},
        "list": {"response": "It opens:\n- at 7 a.m.\n- on Mondays\n1. First.\n2. Second [1]."},
    }
    write(scene.logs / "a.parquet", _named(rows))
    detector_job(scene, runtime={"max_error_share": 1})


def _bytes(scene: Scene) -> None:
    data = [b"It opens at 7 a.m.", b"It opens at \xff\xfe 7 a.m.", None, "Köln öffnet um 7.".encode()]
    table = pa.table({
        "question": ["When?"] * 4,
        "context": [["It opens at 7 a.m."]] * 4,
        "response": pa.array(data, pa.binary()),
        "raw": pa.array([b"\xff", None, b"", b"a"], pa.binary()),
    })  # fmt: skip
    write(scene.logs / "a.parquet", table)
    novelty_job(scene)


def _contexts(scene: Scene) -> None:
    passages = [
        {"id": "p1", "text": "It opens at 7 a.m.", "score": 0.9},
        {"id": "p2", "text": "Staff wear a badge.", "score": 0.5},
    ]
    pages = [{"page_content": "It opens at 7 a.m.", "metadata": {"source": "a.html"}}]
    contexts: dict[str, Any] = {
        "structs": [passages, passages[:1], None],
        "documents": [pages, [], pages],
        "strings": ["It opens at 7 a.m. Staff wear a badge.", "", None],
        "json": [json.dumps(passages), json.dumps(["It opens at 7 a.m."]), "[broken"],
    }
    for name, values in contexts.items():
        rows = [{"row_id": f"{name}-{n}", **GOOD, "context": value} for n, value in enumerate(values)]
        write(scene.folder / f"logs_{name}" / "a.parquet", rows)
    detector_job(scene)


def _languages(scene: Scene) -> None:
    rows: list[Row] = [
        {"language": "de", "context": ["Der Laden öffnet um 7 Uhr, z. B. montags."],
         "response": "Der Laden öffnet z. B. um 7 Uhr. Er schließt um 9 Uhr."},
        {"language": "fr", "context": ["Le magasin ouvre à 7 heures."],
         "response": "Le magasin ouvre à 7 heures. M. Dupont le dirige."},
        {"language": "ja", "context": ["店は7時に開きます。"], "response": "店は7時に開きます。9時に閉まります。"},
        {"language": "English", "context": ["It opens at 7 a.m."], "response": "It opens at 7 a.m. Mr. Smith runs it."},
        {"language": None, "context": ["Магазин открывается в 7."], "response": "Магазин открывается в 7. Он закрыт."},
        {"language": "tlh", "context": ["ngevwI'"], "response": "ngevwI' qach. poSmoH."},
    ]  # fmt: skip
    write(scene.logs / "a.parquet", [{"row_id": f"r{n}", "question": "?", **row} for n, row in enumerate(rows)])
    detector_job(scene, splitting={"language_column": "language"})
    detector_job(scene, name="job-german.yaml", splitting={"language": "de"})


def _conversations(scene: Scene) -> None:
    def talk(*turns: tuple[str, Any]) -> list[Row]:
        return [{"role": role, "content": content} for role, content in turns]

    talks = [
        talk(("system", "It opens at 7 a.m."), ("user", "When does it open?"), ("assistant", "It opens at 7 a.m.")),
        talk(("user", "Hello?"), ("assistant", "Hi."), ("user", "When does it close?"), ("tool", "It closes at 9 p.m."),
             ("tool", "Staff wear a badge."), ("assistant", "It closes at 8 p.m. Staff wear a badge.")),
        talk(("user", "When?"), ("assistant", "At 7.")),
        talk(("user", "When?"), ("tool", "It opens at 7 a.m.")),
        [],
    ]  # fmt: skip
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    ids = pa.array([f"t{n}" for n in range(len(talks))])
    write(scene.logs / "a.parquet", pa.table({"row_id": ids, "talk": pa.array(talks, kind)}))
    texts = [*map(json.dumps, talks[:2]), json.dumps({"messages": talks[0]}), "no talk", None]
    write(scene.folder / "logs_json" / "a.parquet", pa.table({"row_id": ids, "talk": pa.array(texts)}))
    detector_job(scene, input={"columns": {"messages": "talk"}})
    detector_job(scene, name="job-roles.yaml", input={"columns": {"messages": "talk", "passage_roles": ["system"]}})


def _jsonl(scene: Scene) -> None:
    scene.logs.mkdir()
    lines = [json.dumps(row) + "\n" for row in shop_rows(9)]
    (scene.logs / "a.jsonl").write_text("".join(lines[:5]))
    (scene.logs / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[5:]).encode(), mtime=0))
    novelty_job(scene)


def _arrow(scene: Scene) -> None:
    scene.logs.mkdir()
    for number, maker in enumerate((pa.ipc.new_file, pa.ipc.new_stream)):
        table = pa.Table.from_pylist(shop_rows(4, 4 * number))
        with maker(scene.logs / f"data-{number}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    novelty_job(scene)


def _carried(scene: Scene) -> None:
    when = dt.datetime(2026, 11, 20, 9, 30, tzinfo=dt.UTC)
    columns: dict[str, pa.Array] = {
        "score": pa.array([1, 2, None]),
        "status": pa.array(["new", "old", None]),
        "struct": pa.array([{"a": 1, "b": {"c": ["d"]}}, None, {"a": None, "b": None}]),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal(-1)], pa.decimal128(38, 10)),
        "time": pa.array([when, None, when], pa.timestamp("ns", "Europe/Vienna")),
        "day": pa.array([when.date(), None, when.date()], pa.date32()),
        "bytes": pa.array([b"\xff", None, b""], pa.binary()),
        "word": pa.array(["red", None, "red"]).dictionary_encode(),
        "unsigned": pa.array([2**64 - 1, None, 0], pa.uint64()),
        "half": pa.array([1.5, None, float("nan")], pa.float16()),
        "floats": pa.array([float("nan"), float("inf"), float("-inf")]),
        "nothing": pa.nulls(3),
    }
    base = pa.table({name: [row[name] for row in shop_rows(3)] for name in ("question", "context", "response")})
    for name, values in columns.items():
        base = base.append_column(name, values)
    write(scene.logs / "dt=2026-11-20" / "tenant=a%2Fb" / "a.parquet", base)
    write(scene.logs / "dt=2026-11-20" / "tenant=c" / "a.parquet", base.drop_columns(["half"]))
    write(scene.logs / "dt=2026-11-21" / "tenant=__HIVE_DEFAULT_PARTITION__" / "a.parquet", base)
    novelty_job(scene)


def _renamed(scene: Scene) -> None:
    rows = [
        {"id": row["row_id"], "asked": row["question"], "found": row["context"], "said": row["response"], "question": "mine"}
        for row in shop_rows(4)
    ]
    write(scene.logs / "a.parquet", rows)
    novelty_job(scene, input={"columns": {"question": "asked", "context": "found", "response": "said", "row_id": "id"}})


def _bad_files(scene: Scene) -> None:
    write(scene.logs / "a.parquet", shop_rows(3))
    (scene.logs / "b.parquet").write_text("no parquet")
    novelty_job(scene)
    novelty_job(scene, name="job-skip.yaml", input={"on_bad_file": "skip"})


def _repair(scene: Scene) -> None:
    """The broken file is replaced by a good one."""
    write(scene.logs / "b.parquet", shop_rows(2, 3))


def _private(scene: Scene) -> None:
    write(scene.logs / "a.parquet", [{**row, "note": f"about {row['row_id']}", "price": 1.5} for row in shop_rows(5)])
    detector_job(scene, output={"drop_text": {"keep": ["tenant"]}})
    detector_job(scene, name="job-redact.yaml", input={"redact": "tests.golden.logs:hide_names"})


CASES = (
    Case("odd_rows", _odd_rows, (RUN,), needs_ray=True),
    Case("bytes", _bytes, (RUN,)),
    Case("contexts", _contexts, tuple(
        f"run {{dir}}/logs_{name} {{dir}}/{name} --config {{job}}" for name in ("structs", "documents", "strings", "json"))),
    Case("languages", _languages, (RUN, "run {logs} {dir}/german --config {dir}/job-german.yaml")),
    Case("conversations", _conversations, (
        RUN, "run {dir}/logs_json {dir}/json --config {job}", "run {logs} {dir}/roles --config {dir}/job-roles.yaml")),
    Case("jsonl", _jsonl, (RUN,)),
    Case("arrow", _arrow, (RUN,)),
    Case("carried", _carried, (RUN,)),
    Case("renamed", _renamed, (RUN,)),
    Case("bad_files", _bad_files, (Command(RUN, 1), "run {logs} {out} --config {dir}/job-skip.yaml", _repair, RUN)),
    Case("private", _private, (RUN, "run {logs} {dir}/redacted --config {dir}/job-redact.yaml")),
)  # fmt: skip
