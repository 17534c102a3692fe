"""`ragassay tune` makes an adapter from labeled logs, and refuses logs that it can't use."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from typer.testing import CliRunner

from ragassay.jobs.cli.main import app
from ragassay.jobs.training.settings import TrainingSettings, load_training_settings
from ragassay.jobs.training.train import Recipe
from ragassay.pipeline.engines.adapter import SETTINGS_FILE, WEIGHTS_FILE
from ragassay.pipeline.slm.config import Slm
from tests.conftest import write_logs
from tests.raises import raises

SHORT = {"pack": 400, "rank": 2, "check_every": 2, "held_out": 0.3, "learning_rate": 0.01}


def settings(folder: Path, **more: Any) -> list[str | Path]:
    """Options that name a settings file of a short training."""
    path = folder / f"settings-{len(list(folder.glob('settings-*')))}.yaml"
    path.write_text(yaml.safe_dump({**SHORT, **more}))
    return ["--settings", path]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    rows: list[dict[str, Any]] = []
    for n in range(24):
        context = [f"Room {n} opens at {n % 12 + 1} o'clock."]
        rows += [
            {"question": "When?", "context": context, "response": f"Room {n} opens then.", "label": "correct"},
            {"question": "When?", "context": context, "response": f"Hall {n} never opens.", "label": "wrong"},
        ]
    return write_logs(tmp_path / "logs.parquet", rows)


def tune(*args: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["tune", *map(str, args)])
    assert "Traceback" not in result.output, result.output
    return result.exit_code, result.output


def test_an_adapter_is_trained_and_changes_scores(
    logs: Path, tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGASSAY_HOME", str(tmp_path / "home"))
    out = tmp_path / "adapter"
    code, printed = tune(logs, "--out", out, *settings(tmp_path, base=tiny_model))
    assert code == 0, printed
    assert "24 supported, 24 unsupported" in printed
    assert "held out" in printed and "AUROC" in printed
    assert {p.name for p in out.iterdir()} == {WEIGHTS_FILE, SETTINGS_FILE, "adapter_config.json", "training.json", "README.md"}
    training = json.loads((out / "training.json").read_text())
    assert training["recipe"]["rank"] == 2
    assert training["looks"][-1]["tokens"] > 0
    prompts = [[1, 50, 60, 70 + i] for i in range(4)]
    torch.set_num_threads(1)
    plain, tuned = (
        Slm(name="a", model=tiny_model, engine="transformers", adapter=adapter).load_engine(1).label_logprobs(prompts, [10, 20])
        for adapter in (None, str(out))
    )
    assert abs(plain.logprobs - tuned.logprobs).max() > 1e-3

    code, printed = tune(logs, "--out", out, *settings(tmp_path, base=tiny_model))
    assert code == 1 and "error[train.finished-already]: " in printed

    further = tmp_path / "further"
    code, printed = tune(logs, "--adapter", out, "--out", further, *settings(tmp_path, base=tiny_model, learning_rate=0))
    assert code == 0, printed
    assert (further / WEIGHTS_FILE).read_bytes() == (out / WEIGHTS_FILE).read_bytes(), "a learning rate of 0 changes nothing"
    first, second = (json.loads((folder / "training.json").read_text()) for folder in (out, further))
    assert second["before"] == [first] and "before" not in first


def test_an_slm_of_a_job_file_is_trained_under_its_own_prompt(logs: Path, tiny_model: str, tmp_path: Path) -> None:
    prompt = "{% for p in context %}{{ p }}{% endfor %} {{ question }} {{ sentence }} Right?"
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {"members": {"slms": [{"name": "one"}, {"name": "two", "model": tiny_model, "prompt": prompt, "chat": False}]}}
        )
    )
    out = tmp_path / "adapter"
    assert tune(logs, "--config", job, "--slm", "two", "--out", out, *settings(tmp_path))[0] == 0
    assert json.loads((out / SETTINGS_FILE).read_text())["prompt"] == prompt
    code, printed = tune(logs, "--config", job, "--out", tmp_path / "b")
    assert code == 1 and "error[train.several-slms]: " in printed
    code, printed = tune(logs, "--config", job, "--slm", "three", "--out", tmp_path / "b")
    assert code == 1 and "error[train.no-such-slm]: " in printed and "one, two" in printed


def test_unusable_logs_and_models_are_errors(tiny_model: str, tmp_path: Path) -> None:
    row = {"question": "q", "context": ["c"], "response": "r", "label": "correct"}
    logs = write_logs(tmp_path / "one.parquet", [row, {**row, "response": "s", "label": "wrong"}])
    code, printed = tune(logs, "--out", tmp_path / "a", *settings(tmp_path, base=tiny_model))
    assert code == 1 and "error[train.contexts-of-one-kind]: " in printed
    code, printed = tune(tmp_path / "none.parquet", "--out", tmp_path / "a", *settings(tmp_path, base=tiny_model))
    assert code == 1 and "error[path.missing]: " in printed and "none.parquet" in printed
    code, printed = tune(logs, "--out", tmp_path / "a", *settings(tmp_path, base="nowhere/"))
    assert code == 1 and "error[model.hub-unreachable]: " in printed
    assert not (tmp_path / "a").exists()


def test_the_settings_file_is_strict(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("epoch: 2\nrank: 0\n")
    with raises("config.invalid") as error:
        load_training_settings(str(path))
    faults = {fault["key"]: fault for fault in error.value.fields["faults"]}
    assert faults["epoch"]["close"] == "epochs" and "epochs" in faults["epoch"]["text"]
    assert faults["rank"]["code"] == "greater_than_equal"
    path.write_text("- rank")
    with raises("config.no-mapping", kind="settings file"):
        load_training_settings(str(path))
    with raises("config.unreadable", kind="settings file"):
        load_training_settings(str(tmp_path / "none.yaml"))


def test_settings_have_the_defaults_of_the_training_loop(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    assert load_training_settings(None) == load_training_settings(str(tmp_path / "empty.yaml")) == TrainingSettings()
    assert TrainingSettings().recipe == Recipe()
