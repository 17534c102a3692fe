"""Limits of templates, so that one that loops, or grows without end, is an error and neither a hang nor a full memory.

A template is rendered first in a process of its own, with little time and memory, once a machine. After that it is rendered
here, and counted line by line, in case it does otherwise with other texts.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import jinja2

from ragassay.pipeline.engines.template_trial import NO_MEMORY, TOO_LONG
from ragassay.pipeline.engines.text import Messages

SECONDS = 5
"""Processor time of the first rendering."""

WALL_SECONDS = 120.0
"""Time of the process that does it, on a busy machine too."""

MEMORY_BYTES = 512 << 20

MOST_CHARACTERS = 1_000_000
"""Of a rendered template, beside the texts that are put into it."""

MOST_STEPS = 5_000_000
"""Lines of a compiled template that one rendering may run: a prompt takes some for each passage."""

_COMPILER = frozenset({"compiler", "environment", "ext", "idtracking", "lexer", "nodes", "optimizer", "parser", "visitor"})
_JINJA = Path(jinja2.__file__).parent


class TemplateLimitError(ValueError):
    """A template takes too long, too much memory, or gives too much text."""


def try_prompt(template: str, variables: Mapping[str, Any]) -> None:
    """Render a prompt template in a process of its own, unless that was done on this machine.

    Args:
        template: Jinja template.
        variables: Its variables.

    Raises:
        TemplateLimitError: It exceeds a limit. Other errors of the template are left to whoever renders it here.
    """
    _try_once(json.dumps({"template": template, "variables": dict(variables)}))


def render_chat(tokenizer: Any, chat: Messages) -> str:
    """A chat in the chat template of a model, up to where its answer begins.

    Args:
        tokenizer: A Hugging Face tokenizer.
        chat: The chat.

    Raises:
        TemplateLimitError: The template exceeds a limit; what else it raises comes as it is.
    """
    if getattr(tokenizer, "chat_template", None):
        roles = [{"role": message["role"], "content": "text"} for message in chat]
        special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
        _try_once(json.dumps({"template": tokenizer.get_chat_template(), "messages": roles, "variables": special}))
    with limited_steps():
        text = str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    check_length(text, [message["content"] for message in chat])
    return text


def check_length(text: str, texts: Sequence[str]) -> None:
    """Check how long a rendered template is.

    Args:
        text: It.
        texts: What was put into it.

    Raises:
        TemplateLimitError: It has far more characters than those.
    """
    if len(text) > MOST_CHARACTERS + 2 * sum(map(len, texts)):
        raise TemplateLimitError(f"it gives {len(text):,} characters")


@contextmanager
def limited_steps(most: int = MOST_STEPS) -> Iterator[None]:
    """Let the templates that a block renders in this thread run so many lines.

    Args:
        most: How many.

    Raises:
        TemplateLimitError: There are more: from inside the template.
    """
    steps = 0

    def line(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > most:
            raise TemplateLimitError(f"it runs more than {most:,} steps: it loops without end, or over too much")
        return line

    def call(frame: FrameType, event: str, value: Any) -> Any:
        return line(frame, event, value) if _is_template(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


@lru_cache(maxsize=1024)
def _is_template(filename: str) -> bool:
    """Whether code of a file runs as a template does, rather than when it is compiled."""
    path = Path(filename)
    return filename == "<template>" or (path.parent == _JINJA and path.stem not in _COMPILER)


@lru_cache(maxsize=64)
def _try_once(given: str) -> None:
    from ragassay.pipeline.engines.checked import once_a_machine

    once_a_machine(["template", given], lambda: _try(json.loads(given)))


def _try(given: dict[str, Any]) -> None:
    limits = {"seconds": SECONDS, "bytes": MEMORY_BYTES, "characters": MOST_CHARACTERS}
    # -P: the folder of the file holds modules whose names others may want.
    command = [sys.executable, "-P", str(Path(__file__).with_name("template_trial.py"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=json.dumps({**given, **limits}).encode(),
            env=environment,
            capture_output=True,
            timeout=WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TemplateLimitError(f"it takes more than {WALL_SECONDS:.0f} s") from None
    code = done.returncode
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TemplateLimitError(f"it takes more than {SECONDS} s: it loops without end, or over too much")
    if code == TOO_LONG:
        raise TemplateLimitError(f"it gives more than {MOST_CHARACTERS:,} characters")
    if code == NO_MEMORY:
        raise TemplateLimitError(f"it takes more than {MEMORY_BYTES >> 20} MiB of memory")
    if code:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TemplateLimitError(f"the process that tries it ended with {code}: {''.join(last)[:300]}")
