"""Which consoles show progress that changes in place."""

import importlib.util
from typing import Any

import pytest
from rich.console import Console

from ragassay.jobs.display import live


@pytest.mark.parametrize(("options", "has_widgets", "expected"), [
    ({"force_terminal": True}, False, True),
    ({"force_terminal": False}, True, False),
    ({"force_terminal": False, "force_jupyter": True}, True, True),
    ({"force_terminal": False, "force_jupyter": True}, False, False),
])  # fmt: skip
def test_a_notebook_needs_widgets(
    options: dict[str, Any], has_widgets: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec("json") if has_widgets else None
    monkeypatch.setattr(live, "find_spec", lambda _: spec)
    assert live.can_update(Console(**options)) is expected
