"""Test that the dashboard shows existing metrics of RAGAssay and Ray, and that Prometheus finds both."""

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
def ray_metric_names() -> frozenset[str]:
    """Return the metrics that Ray's own dashboards show."""
    folder = Path(next(iter(rays.__path__)))
    return frozenset(name for path in folder.glob("*.py") for name in NAME.findall(path.read_text()))


def load_dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((INFRA / "grafana.json").read_text())
    return loaded


def list_queries() -> list[str]:
    panels = [target["expr"] for panel in load_dashboard()["panels"] for target in panel["targets"]]
    return panels + [entry["query"] for entry in load_dashboard()["templating"]["list"] if entry["type"] == "query"]


def test_every_metric_of_the_dashboard_exists() -> None:
    names = {name for query in list_queries() for name in NAME.findall(query)}
    ours = {name for name in names if name.startswith("ray_ragassay_")}
    assert ours == {f"ray_{name}_total" for name in COUNTERS}, (
        "the dashboard shows each counter; Ray adds the prefix ray_ and the suffix _total"
    )
    assert names - ours and names - ours <= ray_metric_names()


def test_queries_are_well_formed_and_use_the_slm_tag() -> None:
    variables = {entry["name"] for entry in load_dashboard()["templating"]["list"]} | {"__rate_interval", "__range"}
    for query in list_queries():
        assert all(query.count(opening) == query.count(closing) for opening, closing in ("()", "{}", "[]"))
        assert set(re.findall(r"\$\{?(\w+)", query)) <= variables
        assert "slm" in query or "stage" in query or "ragassay" not in query


def test_panels_do_not_overlap() -> None:
    panels = load_dashboard()["panels"]
    cells = [
        (x, y)
        for area in (panel["gridPos"] for panel in panels)
        for x in range(area["x"], area["x"] + area["w"])
        for y in range(area["y"], area["y"] + area["h"])
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
    """Schema of prometheus.yaml, with the fields that infra/ uses."""

    globals: Global
    scrape_configs: list[Scrape]


def parse_prometheus(text: str) -> Prometheus:
    loaded = yaml.safe_load(text)
    return Prometheus.model_validate({"globals": loaded.pop("global"), **loaded})


def test_prometheus_reads_the_node_list_that_ray_writes() -> None:
    text = (INFRA / "prometheus.yaml").read_text()
    config = parse_prometheus(text)
    assert len({job.job_name for job in config.scrape_configs}) == len(config.scrape_configs) == 2
    (path,) = [path for job in config.scrape_configs for files in job.file_sd_configs for path in files.files]
    own = Path(next(iter(rays.__path__))).parent / "export" / "prometheus" / "prometheus.yml"
    assert path in own.read_text()
    for job in config.scrape_configs:
        for rule in job.relabel_configs:
            assert (rule.target_label is not None) == (rule.action == "replace")
    with pytest.raises(ValidationError, match="Extra inputs"):
        parse_prometheus(text.replace("relabel_configs", "relabel_config"))
