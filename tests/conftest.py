"""Fixtures: the embedded model's tokenizer, a tiny model with random weights, and logs written to Parquet."""

import json
import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.pipeline.stages.stage import Stage, run_contained
from tests.chat_server import serve  # noqa: F401  (a fixture)
from tests.golden.command import shared_ray
from tests.vllm_server import vllm_server  # noqa: F401  (a fixture)
from tests.without_models import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401  (hooks)

hypothesis.settings.register_profile("short", deadline=None, max_examples=30)
hypothesis.settings.register_profile("long", deadline=None, max_examples=500)  # pytest --hypothesis-profile long
hypothesis.settings.load_profile("short")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

REPO = Path(__file__).parent.parent
HANDBOOK = REPO / "jobs" / "data" / "handbook" / "logs"
OBJECT_STORE = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
"""Settings of an object store for Ray's workers, which inherit the environment in which Ray starts."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Exclude Hypothesis tests from coverage, which would double their time and add hardly any line."""
    for item in items:
        if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj):
            item.add_marker("no_cover")


@pytest.fixture(scope="session")
def shared_ray_session() -> Iterator[None]:
    """Start one Ray for all runs of this process; a run that finds Ray in its process joins it and does not stop it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OBJECT_STORE.items():
            patch.setenv(name, value)
        with shared_ray():
            patch.undo()
            yield


@pytest.fixture(scope="session")
def embedded() -> str:
    """Folder of the embedded SLM, dequantized (once per machine)."""
    from ragassay.pipeline.engines.weights import prepare_weights

    return prepare_weights("embedded")


@pytest.fixture(scope="session")
def tokenizer(embedded: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(embedded)


TINY_VOCABULARY = 16_384
"""Vocabulary size of the tiny model: enough for Yes and No, and small because a large tokenizer loads slowly."""


@pytest.fixture(scope="session")
def tiny_model(embedded: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of a tiny Llama with random weights and the first `TINY_VOCABULARY` tokens of the embedded model's tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("models") / "tiny"
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=TINY_VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=64, max_position_embeddings=2048, initializer_range=0.2, tie_word_embeddings=True,
        bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(Path(embedded) / name, folder)
    tokenizer = json.loads((Path(embedded) / "tokenizer.json").read_text())
    vocabulary = {token: number for token, number in tokenizer["model"]["vocab"].items() if number < TINY_VOCABULARY}
    merges = [pair for pair in tokenizer["model"]["merges"] if "".join(pair) in vocabulary]
    tokenizer["model"] |= {"vocab": vocabulary, "merges": merges}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return str(folder)


def write_logs(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    """Write rows as a Parquet file; create missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def free_port() -> int:
    """Find a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def example_rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Make log rows with different contexts and two or three sentences each."""
    return [
        {
            "question": f"What are the hours of shop {i}?",
            "context": [f"Shop {i} opens at {7 + i % 4} a.m. and closes at {4 + i % 5} p.m.", "Staff wear a badge."],
            "response": f"Shop {i} opens at {7 + i % 3} a.m. It closes at {4 + i % 5} p.m." + " Staff wear a badge." * (i % 2),
            "tenant": f"tenant-{i % 3}",
        }
        for i in range(start, start + count)
    ]


def run_stages(stages: Sequence[Stage], table: pa.Table) -> pa.Table:
    """Set up stages and run a table through them in this process."""
    for stage in stages:
        stage.setup()
        table = run_contained(stage, table)
    return table
