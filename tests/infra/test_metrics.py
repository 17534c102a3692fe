"""The dashboard draws what we count and what Ray counts; Prometheus finds both."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import ray.dashboard.modules.metrics.dashboards as rays
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from ragassay.jobs.runtime.metrics import COUNTERS
from tests.infra.commands import INFRA

NAME = re.compile(r"\b(ray_[a-z_]+)\b")


@cache
def ray_names() -> frozenset[str]:
    """Metrics that Ray's own dashboards draw."""
    folder = Path(next(iter(rays.__path__)))
    return frozenset(name for path in folder.glob("*.py") for name in NAME.findall(path.read_text()))


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((INFRA / "grafana.json").read_text())
    return loaded


def queries() -> list[str]:
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    return panels + [entry["query"] for entry in dashboard()["templating"]["list"] if entry["type"] == "query"]


def test_every_metric_of_the_dashboard_is_counted() -> None:
    names = {name for query in queries() for name in NAME.findall(query)}
    ours = {name for name in names if name.startswith("ray_ragassay_")}
    assert ours == {f"ray_{name}_total" for name in COUNTERS}, (
        "each of our counters is drawn; Ray puts ray_ before, _total behind"
    )
    assert names - ours and names - ours <= ray_names()


def test_queries_are_whole_and_go_by_our_tag() -> None:
    variables = {entry["name"] for entry in dashboard()["templating"]["list"]} | {"__rate_interval", "__range"}
    for query in queries():
        assert all(query.count(left) == query.count(right) for left, right in ("()", "{}", "[]"))
        assert set(re.findall(r"\$\{?(\w+)", query)) <= variables
        assert "slm" in query or "stage" in query or "ragassay" not in query


def test_panels_lie_side_by_side() -> None:
    panels = dashboard()["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels) and all(panel["title"] for panel in panels)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Relabel(Strict):
    source_labels: list[str]
    regex: str = "(.*)"
    action: Literal["replace", "keep", "drop"] = "replace"
    target_label: str | None = None
    replacement: str = "$1"


class Pods(Strict):
    role: Literal["pod", "node", "service", "endpoints", "endpointslice", "ingress"]


class Files(Strict):
    files: list[str]


class Scrape(Strict):
    job_name: str
    kubernetes_sd_configs: list[Pods] = []
    file_sd_configs: list[Files] = []
    relabel_configs: list[Relabel] = []


class Global(Strict):
    scrape_interval: str


class Prometheus(Strict):
    """As its documentation has it, as far as we use it."""

    globals: Global
    scrape_configs: list[Scrape]


def prometheus(text: str) -> Prometheus:
    loaded = yaml.safe_load(text)
    return Prometheus.model_validate({"globals": loaded.pop("global"), **loaded})


def test_prometheus_finds_nodes_where_ray_writes_them() -> None:
    text = (INFRA / "prometheus.yaml").read_text()
    found = prometheus(text)
    assert len({job.job_name for job in found.scrape_configs}) == len(found.scrape_configs) == 2
    (path,) = [path for job in found.scrape_configs for files in job.file_sd_configs for path in files.files]
    own = Path(next(iter(rays.__path__))).parent / "export" / "prometheus" / "prometheus.yml"
    assert path in own.read_text()
    for job in found.scrape_configs:
        for rule in job.relabel_configs:
            assert (rule.target_label is not None) == (rule.action == "replace")
    with pytest.raises(ValidationError, match="Extra inputs"):
        prometheus(text.replace("relabel_configs", "relabel_config"))
