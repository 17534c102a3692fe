"""Skip the tests that need a model where PyTorch is not installed: in an environment with the core only."""

import re
from collections.abc import Generator
from typing import Any

import pytest

from ragassay.pipeline.install import is_installed

MODEL_PACKAGES = ("torch", "transformers", "peft", "gguf", "vllm", "tokenizers", "safetensors")
_NEEDS_A_MODEL = re.compile(rf"No module named '({'|'.join(MODEL_PACKAGES)})\b|(ragassay\[(?:cpu|tune)\])")
"""What a failed test prints if a package of the extra `cpu` is missing."""


def _find_reason(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    if report.failed and not is_installed("torch"):
        match = _NEEDS_A_MODEL.search(report.longreprtext + "".join(text for _, text in report.sections))
        return f"needs {match[1] or match[2]}" if match else None
    return None


def _skip(report: Any, path: str, reason: str) -> None:
    report.outcome, report.longrepr = "skipped", (path, 1, f"Skipped: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Skip a file that imports a missing package."""
    report = yield
    if reason := _find_reason(report):
        _skip(report, str(collector.path), reason)
        report.result = []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Skip a test that fails because a package is missing."""
    report = yield
    if reason := _find_reason(report):
        _skip(report, str(item.path), reason)
    return report
