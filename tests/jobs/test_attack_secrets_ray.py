"""An error of a library in a worker of Ray's comes to the driver, and into Ray's logs, without the secrets of URIs."""

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.plan import Stage, how
from ragassay.pipeline.slm.config import Replicas

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_ray")]

SECRET = "hUsH7xq"
URI = f"s3://KEY:{SECRET}@bkt/a?sig={SECRET}"


def fail(table: pa.Table, uri: str) -> pa.Table:
    logging.getLogger("ray.data").error("at %s", uri)
    raise ValueError(f"reading '{uri}' failed", uri)


class Fail:
    """An actor that fails as it works."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __call__(self, table: pa.Table) -> pa.Table:
        return fail(table, self._uri)


@pytest.mark.parametrize("kind", ["function", "actor"])
def test_attack_no_error_of_a_worker_holds_a_secret(kind: str) -> None:
    import ray

    from ragassay.jobs.guard import Guard

    # The URI's secret is no literal of a line that a traceback quotes.
    stage: Any = Stage("fail", fail, {"uri": URI}) if kind == "function" else Stage("fail", Fail, {"uri": URI}, Replicas())
    dataset = ray.data.from_arrow(pa.table({"a": [1]})).map_batches(**how(stage, 0.1, Guard()))
    with pytest.raises(Exception, match="s3://bkt/a") as error:
        dataset.materialize()
    behind: BaseException | None = error.value
    while behind is not None:
        assert SECRET not in f"{behind} {behind!r} {vars(behind)}"
        behind = getattr(behind, "cause", None) or behind.__cause__ or behind.__context__
    logs = Path(ray._private.worker._global_node.get_logs_dir_path())
    assert not [path.name for path in logs.rglob("*.*") if path.is_file() and SECRET in path.read_text(errors="replace")]
