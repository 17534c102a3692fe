"""Cases about inputs: formats, shapes of rows, tables, exports of traces."""

import gzip
import json

from tests.golden.cases_runs import DETECTORS, RUN
from tests.golden.logs import shop_rows, write
from tests.golden.scene import Case, Scene


def _jsonl(scene: Scene) -> None:
    scene.logs.mkdir()
    lines = [json.dumps(row) + "\n" for row in shop_rows(9)]
    (scene.logs / "a.jsonl").write_text("".join(lines[:5]))
    (scene.logs / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[5:]).encode(), mtime=0))
    scene.job(slms=[], detectors=DETECTORS)


CASES = (Case("jsonl", _jsonl, (RUN,)),)
