"""Render a template once in a process of its own, with little time and memory: what `template_limits` runs.

It reads a JSON object on stdin and imports nothing of ours: it is run as a file.
"""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOO_LONG = 3
"""Exit code: the text is longer than allowed."""

NO_MEMORY = 4
"""Exit code: it wants more memory than allowed."""


def main() -> int:
    """Render the template on stdin; an error of the template itself is nothing to report here."""
    given = json.load(sys.stdin)
    render = _chat if "messages" in given else _prompt
    rendered = render(given)
    _limit(given["seconds"], given["bytes"])
    try:
        return TOO_LONG if len(rendered()) > given["characters"] else 0
    except MemoryError:
        return NO_MEMORY
    except Exception:  # who renders it in earnest says which
        return 0


def _chat(given: dict[str, Any]) -> Callable[[], str]:
    from transformers.utils.chat_template_utils import render_jinja_template

    def render() -> str:
        texts, _ = render_jinja_template(
            [given["messages"]], chat_template=given["template"], add_generation_prompt=True, **given["variables"]
        )
        return str(texts[0])

    return render


def _prompt(given: dict[str, Any]) -> Callable[[], str]:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, keep_trailing_newline=True)
    return lambda: environment.from_string(given["template"]).render(**given["variables"])


def _limit(seconds: int, size: int) -> None:
    """So much more processor time and address space than was used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds += int(used.ru_utime + used.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size += pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
