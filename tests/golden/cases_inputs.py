"""Cases about logs: formats, shapes of rows, odd texts, passthrough columns."""

import datetime as dt
import decimal
import gzip
import json
from typing import Any

import pyarrow as pa

from tests.golden.jobs import RUN, write_detector_job, write_novelty_job
from tests.golden.logs import Row, make_shop_rows, write
from tests.golden.scene import Case, Command, Scene

GOOD: Row = {"question": "When does it open?", "context": ["It opens at 7 a.m. on Mondays."], "response": "It opens at 7 a.m."}


def _name_rows(rows: dict[str, Row]) -> list[Row]:
    return [{"row_id": name, **GOOD, **row} for name, row in rows.items()]


def _write_odd_rows(scene: Scene) -> None:
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
    write(scene.logs / "a.parquet", _name_rows(rows))
    write_detector_job(scene, runtime={"max_error_share": 1})


def _write_bytes(scene: Scene) -> None:
    data = [b"It opens at 7 a.m.", b"It opens at \xff\xfe 7 a.m.", None, "Köln öffnet um 7.".encode()]
    table = pa.table({
        "question": ["When?"] * 4,
        "context": [["It opens at 7 a.m."]] * 4,
        "response": pa.array(data, pa.binary()),
        "raw": pa.array([b"\xff", None, b"", b"a"], pa.binary()),
    })  # fmt: skip
    write(scene.logs / "a.parquet", table)
    write_novelty_job(scene)


def _write_contexts(scene: Scene) -> None:
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
    write_detector_job(scene)


def _write_languages(scene: Scene) -> None:
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
    write_detector_job(scene, splitting={"language_column": "language"})
    write_detector_job(scene, name="job-german.yaml", splitting={"language": "de"})


def _write_conversations(scene: Scene) -> None:
    def conversation(*turns: tuple[str, Any]) -> list[Row]:
        return [{"role": role, "content": content} for role, content in turns]

    conversations = [
        conversation(("system", "It opens at 7 a.m."), ("user", "When does it open?"), ("assistant", "It opens at 7 a.m.")),
        conversation(("user", "Hello?"), ("assistant", "Hi."), ("user", "When does it close?"), ("tool", "It closes at 9 p.m."),
             ("tool", "Staff wear a badge."), ("assistant", "It closes at 8 p.m. Staff wear a badge.")),
        conversation(("user", "When?"), ("assistant", "At 7.")),
        conversation(("user", "When?"), ("tool", "It opens at 7 a.m.")),
        [],
    ]  # fmt: skip
    type_ = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    ids = pa.array([f"t{n}" for n in range(len(conversations))])
    write(scene.logs / "a.parquet", pa.table({"row_id": ids, "talk": pa.array(conversations, type_)}))
    texts = [*map(json.dumps, conversations[:2]), json.dumps({"messages": conversations[0]}), "no talk", None]
    write(scene.folder / "logs_json" / "a.parquet", pa.table({"row_id": ids, "talk": pa.array(texts)}))
    write_detector_job(scene, input={"columns": {"messages": "talk"}})
    write_detector_job(scene, name="job-roles.yaml", input={"columns": {"messages": "talk", "passage_roles": ["system"]}})


def _write_jsonl(scene: Scene) -> None:
    scene.logs.mkdir()
    lines = [json.dumps(row) + "\n" for row in make_shop_rows(9)]
    (scene.logs / "a.jsonl").write_text("".join(lines[:5]))
    (scene.logs / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[5:]).encode(), mtime=0))
    write_novelty_job(scene)


def _write_csv(scene: Scene) -> None:
    """Write a CSV file as Excel does, with broken records, a TSV file, and a sheet of labels with values of every kind."""
    scene.logs.mkdir()
    rows = [[row["row_id"], row["question"], " || ".join(row["context"]), row["response"]] for row in make_shop_rows(9)]
    header = ["req_id", "question", "context", "response"]
    records = ['"' + '";"'.join(text.replace('"', '""') for text in row) + '"' for row in [header, *rows[:6]]]
    broken = ["too;few", 'open;"quote;is not;closed', "one;too;many;fields;here"]
    (scene.logs / "a.csv").write_text("\ufeffsep=;\r\n" + "\r\n".join([*records, *broken, ";;;", ""]), encoding="utf-8")
    (scene.logs / "b.tsv").write_text("\n".join("\t".join(row) for row in [header, *rows[6:]]) + "\n")
    labels = ["Correct", "hallucinated", "WRONG", "yes", "meh", "unsure", "", "supported"]
    lines = [f"{row[0]},{label},a comment" for row, label in zip(rows, labels, strict=False)]
    sheet = ["REQ_ID,verdict,comment", *lines, "nowhere,correct,", f"{rows[0][0]},wrong,"]
    (scene.folder / "sheet.csv").write_text("\n".join(sheet) + "\n")
    columns = {"row_id": "req_id", "passage_separator": "||"}
    write_novelty_job(scene, input={"columns": columns})


def _write_arrow(scene: Scene) -> None:
    scene.logs.mkdir()
    for number, maker in enumerate((pa.ipc.new_file, pa.ipc.new_stream)):
        table = pa.Table.from_pylist(make_shop_rows(4, 4 * number))
        with maker(scene.logs / f"data-{number}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    write_novelty_job(scene)


def _write_passthrough_columns(scene: Scene) -> None:
    time = dt.datetime(2026, 11, 20, 9, 30, tzinfo=dt.UTC)
    columns: dict[str, pa.Array] = {
        "score": pa.array([1, 2, None]),
        "status": pa.array(["new", "old", None]),
        "struct": pa.array([{"a": 1, "b": {"c": ["d"]}}, None, {"a": None, "b": None}]),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal(-1)], pa.decimal128(38, 10)),
        "time": pa.array([time, None, time], pa.timestamp("ns", "Europe/Vienna")),
        "day": pa.array([time.date(), None, time.date()], pa.date32()),
        "bytes": pa.array([b"\xff", None, b""], pa.binary()),
        "word": pa.array(["red", None, "red"]).dictionary_encode(),
        "unsigned": pa.array([2**64 - 1, None, 0], pa.uint64()),
        "half": pa.array([1.5, None, float("nan")], pa.float32()).cast(pa.float16()),
        "floats": pa.array([float("nan"), float("inf"), float("-inf")]),
        "nothing": pa.nulls(3),
    }
    base = pa.table({name: [row[name] for row in make_shop_rows(3)] for name in ("question", "context", "response")})
    for name, values in columns.items():
        base = base.append_column(name, values)
    write(scene.logs / "dt=2026-11-20" / "tenant=a%2Fb" / "a.parquet", base)
    write(scene.logs / "dt=2026-11-20" / "tenant=c" / "a.parquet", base.drop_columns(["half"]))
    write(scene.logs / "dt=2026-11-21" / "tenant=__HIVE_DEFAULT_PARTITION__" / "a.parquet", base)
    write_novelty_job(scene)


def _write_renamed_columns(scene: Scene) -> None:
    rows = [
        {"id": row["row_id"], "query": row["question"], "docs": row["context"], "answer": row["response"], "question": "other"}
        for row in make_shop_rows(4)
    ]
    write(scene.logs / "a.parquet", rows)
    write_novelty_job(scene, input={"columns": {"question": "query", "context": "docs", "response": "answer", "row_id": "id"}})


def _write_bad_file(scene: Scene) -> None:
    write(scene.logs / "a.parquet", make_shop_rows(3))
    (scene.logs / "b.parquet").write_text("no parquet")
    write_novelty_job(scene)
    write_novelty_job(scene, name="job-skip.yaml", input={"on_bad_file": "skip"})


def _repair_file(scene: Scene) -> None:
    """Replace the broken file with a good one."""
    write(scene.logs / "b.parquet", make_shop_rows(2, 3))


def _write_private(scene: Scene) -> None:
    write(scene.logs / "a.parquet", [{**row, "note": f"about {row['row_id']}", "price": 1.5} for row in make_shop_rows(5)])
    write_detector_job(scene, output={"drop_text": {"keep": ["tenant"]}})
    write_detector_job(scene, name="job-redact.yaml", input={"redact": "tests.golden.logs:hide_names"})


CASES = (
    Case("odd_rows", _write_odd_rows, (RUN,), needs_ray=True),
    Case("bytes", _write_bytes, (RUN,)),
    Case("contexts", _write_contexts, tuple(
        f"run {{dir}}/logs_{name} {{dir}}/{name} --config {{job}}" for name in ("structs", "documents", "strings", "json"))),
    Case("languages", _write_languages, (RUN, "run {logs} {dir}/german --config {dir}/job-german.yaml")),
    Case("conversations", _write_conversations, (
        RUN, "run {dir}/logs_json {dir}/json --config {job}", "run {logs} {dir}/roles --config {dir}/job-roles.yaml")),
    Case("jsonl", _write_jsonl, (RUN,)),
    Case("csv", _write_csv, (RUN, "estimate {out} --labels {dir}/sheet.csv", "export {out} {dir}/verdicts.tsv")),
    Case("arrow", _write_arrow, (RUN,)),
    Case("passthrough_columns", _write_passthrough_columns, (RUN,)),
    Case("renamed_columns", _write_renamed_columns, (RUN,)),
    Case("bad_files", _write_bad_file, (Command(RUN, 1), "run {logs} {out} --config {dir}/job-skip.yaml", _repair_file, RUN)),
    Case("private", _write_private, (RUN, "run {logs} {dir}/redacted --config {dir}/job-redact.yaml")),
)  # fmt: skip
