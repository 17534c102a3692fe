"""Limits for templates, so that an endless loop or unbounded output is an error, not a hang or a full memory.

On each machine a template is first rendered in a separate process with little time and memory. Later renderings run in this
process with a limit on executed lines, because a template that passed this trial can still loop with other texts.
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
from ragassay.pipeline.engines.text_protocol import Messages

TRIAL_SECONDS = 5
"""Processor time of the first rendering."""

TRIAL_TIMEOUT_SECONDS = 120.0
"""Timeout of the process for the first rendering, sufficient for a busy machine."""

TRIAL_MEMORY_BYTES = 512 << 20

MAX_CHARACTERS = 1_000_000
"""Maximum length of a rendered template, without the texts in it."""

MAX_STEPS = 5_000_000
"""Maximum number of compiled template lines per rendering; a prompt needs a few per passage."""

_COMPILER = frozenset({"compiler", "environment", "ext", "idtracking", "lexer", "nodes", "optimizer", "parser", "visitor"})
_JINJA = Path(jinja2.__file__).parent


class TemplateLimitError(ValueError):
    """A template needs too much time or memory, or its output is too long."""


def check_prompt_limits(template: str, variables: Mapping[str, Any]) -> None:
    """Render a prompt template in a separate process, once per machine.

    Args:
        template: Jinja template.
        variables: Its variables.

    Raises:
        TemplateLimitError: It exceeds a limit. Other errors of the template appear when it is rendered in this process.
    """
    _run_trial_once(json.dumps({"template": template, "variables": dict(variables)}))


def render_chat(tokenizer: Any, chat: Messages) -> str:
    """Render a chat with a model's chat template, up to the start of the answer.

    Args:
        tokenizer: A Hugging Face tokenizer.
        chat: The chat.

    Raises:
        TemplateLimitError: The template exceeds a limit; its other errors are raised unchanged.
    """
    if getattr(tokenizer, "chat_template", None):
        roles = [{"role": message["role"], "content": "text"} for message in chat]
        special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
        _run_trial_once(json.dumps({"template": tokenizer.get_chat_template(), "messages": roles, "variables": special}))
    with limit_steps():
        text = str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    check_length(text, [message["content"] for message in chat])
    return text


def check_length(text: str, texts: Sequence[str]) -> None:
    """Check the length of a rendered template.

    Args:
        text: The rendered template.
        texts: Texts that were filled in.

    Raises:
        TemplateLimitError: It is far longer than these texts.
    """
    if len(text) > MAX_CHARACTERS + 2 * sum(map(len, texts)):
        raise TemplateLimitError(f"its output has {len(text):,} characters")


@contextmanager
def limit_steps(max_steps: int = MAX_STEPS) -> Iterator[None]:
    """Limit the number of template lines that run in a `with` block on this thread.

    Args:
        max_steps: Maximum number of lines.

    Raises:
        TemplateLimitError: The limit is exceeded; raised inside the template.
    """
    steps = 0

    def count_line(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps > max_steps:
            raise TemplateLimitError(f"it runs more than {max_steps:,} steps: an endless or too long loop")
        return count_line

    def trace_call(frame: FrameType, event: str, value: Any) -> Any:
        return count_line(frame, event, value) if _is_template(frame.f_code.co_filename) else None

    previous_trace = sys.gettrace()
    sys.settrace(trace_call)
    try:
        yield
    finally:
        sys.settrace(previous_trace)


@lru_cache(maxsize=1024)
def _is_template(filename: str) -> bool:
    """Return whether code of a file belongs to the rendering of a template, not to its compilation."""
    path = Path(filename)
    return filename == "<template>" or (path.parent == _JINJA and path.stem not in _COMPILER)


@lru_cache(maxsize=64)
def _run_trial_once(trial: str) -> None:
    from ragassay.pipeline.engines.check_once import run_once_per_machine

    run_once_per_machine(["template", trial], lambda: _run_trial(json.loads(trial)))


def _run_trial(trial: dict[str, Any]) -> None:
    limits = {"seconds": TRIAL_SECONDS, "bytes": TRIAL_MEMORY_BYTES, "characters": MAX_CHARACTERS}
    # -P: module names in the file's folder must not shadow other modules.
    command = [sys.executable, "-P", str(Path(__file__).with_name("template_trial.py"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        process = subprocess.run(
            command,
            input=json.dumps({**trial, **limits}).encode(),
            env=environment,
            capture_output=True,
            timeout=TRIAL_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TemplateLimitError(f"it takes more than {TRIAL_TIMEOUT_SECONDS:.0f} s") from None
    code = process.returncode
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TemplateLimitError(f"it takes more than {TRIAL_SECONDS} s: an endless or too long loop")
    if code == TOO_LONG:
        raise TemplateLimitError(f"its output has more than {MAX_CHARACTERS:,} characters")
    if code == NO_MEMORY:
        raise TemplateLimitError(f"it takes more than {TRIAL_MEMORY_BYTES >> 20} MiB of memory")
    if code:
        last_line = process.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TemplateLimitError(f"the trial process ended with exit code {code}: {''.join(last_line)[:300]}")
