"""Render a template once in a separate process with little time and memory; `template_limits` runs this file.

It reads a JSON object from stdin and imports nothing from RAGAssay, because it runs as a file.
"""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOO_LONG = 3
"""Exit code: the output is longer than allowed."""

NO_MEMORY = 4
"""Exit code: the template needs more memory than allowed."""


def main() -> int:
    """Render the template from stdin; errors of the template itself are not reported here."""
    trial = json.load(sys.stdin)
    render = _chat if "messages" in trial else _prompt
    rendered = render(trial)
    _limit(trial["seconds"], trial["bytes"])
    try:
        return TOO_LONG if len(rendered()) > trial["characters"] else 0
    except MemoryError:
        return NO_MEMORY
    except Exception:  # the real rendering reports it
        return 0


def _chat(trial: dict[str, Any]) -> Callable[[], str]:
    from transformers.utils.chat_template_utils import render_jinja_template

    def render() -> str:
        texts, _ = render_jinja_template(
            [trial["messages"]], chat_template=trial["template"], add_generation_prompt=True, **trial["variables"]
        )
        return str(texts[0])

    return render


def _prompt(trial: dict[str, Any]) -> Callable[[], str]:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, keep_trailing_newline=True)
    return lambda: environment.from_string(trial["template"]).render(**trial["variables"])


def _limit(seconds: int, size: int) -> None:
    """Limit further processor time and address space."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds += int(used.ru_utime + used.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size += pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
