"""The section `evaluation` gives the defaults of the options of evaluate, report and calibrate."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.cli.options import Verdict, label_source
from ragassay.jobs.config.evaluation import EvaluationConfig
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.pipeline.errors import OutputError
from tests.jobs.conftest import here, write_job
from tests.raises import EXAMPLE, fails, raises

SETTINGS = {
    "true_means": "hallucinated",
    "ignore": ["unsure"],
    "sentence_labels": "claims",
    "group": "question_id",
    "resamples": 7,
}
OPTIONS = ["--true-means", "supported", "--ignore-label", "skip", "--group", "item"]


def test_a_setting_counts_where_no_option_is_given() -> None:
    defaults = EvaluationConfig.model_validate(SETTINGS)
    assert label_source("label", None, None, None, None, None, defaults) == LabelSource(
        "label", "hallucinated", frozenset({"unsure"}), "claims"
    )
    given = label_source("label", None, Verdict.SUPPORTED, ["skip"], "spans", ["split=dev"], defaults)
    assert given == LabelSource("label", "supported", frozenset({"skip"}), "spans", {"split": "dev"})


def test_a_file_that_states_what_its_labels_mean_needs_no_setting() -> None:
    defaults = EvaluationConfig.model_validate(SETTINGS)
    assert label_source(None, "a.jsonl", None, None, None, None, defaults) == LabelSource("label", file="a.jsonl")
    with raises("options.labels-say-it"):
        label_source(None, "a.jsonl", Verdict.SUPPORTED, None, None, None, defaults)


@pytest.mark.parametrize(
    ("command", "more"),
    [("evaluate", []), ("report", []), ("calibrate", ["--target", "f1"])],
)
def test_commands_take_the_settings_of_the_job_file(
    command: str, more: list[str], scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[LabelSource, dict[str, Any]]] = []

    def stop(*arguments: Any, **options: Any) -> None:
        seen.append((next(a for a in arguments if isinstance(a, LabelSource)), options))
        raise OutputError(EXAMPLE, text="far enough")

    module = "calibrate" if command == "calibrate" else "evaluate"
    monkeypatch.setattr(f"ragassay.jobs.evaluation.{module}.{module}", stop)
    config = write_job(tmp_path / "job.yaml", evaluation=SETTINGS)
    for options in ([], OPTIONS):
        fails(here(command, scored, "--label", "label", "--config", config, *more, *options), EXAMPLE.code)
    (by_file, file_options), (by_options, given) = seen
    assert (by_file.true_means, by_file.ignore, file_options["group"]) == ("hallucinated", frozenset({"unsure"}), "question_id")
    assert (by_options.true_means, by_options.ignore, given["group"]) == ("supported", frozenset({"skip"}), "item")
    if command != "calibrate":
        assert file_options["resamples"] == given["resamples"] == 7
