"""Text engines: log text in chats stays plain, and requests start at the configured rate."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.engines.plain_text import PlainTextEncoder
from ragassay.pipeline.engines.server import ChatTask, ModelEndpoint, ServerSettings, send_chats
from ragassay.pipeline.engines.vllm_text import encode_chat
from tests.chat_server import Serve, completion

CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "\ue0000\ue001", "\ue0001\ue001", "\n", "a"]


@pytest.fixture(scope="module")
def plain(tokenizer: Any) -> PlainTextEncoder:
    return PlainTextEncoder(tokenizer)


@given(st.lists(st.lists(st.sampled_from(CONTROL), max_size=6).map("".join), min_size=1, max_size=3))
def test_log_text_never_becomes_a_control_token_or_another_message(
    tokenizer: Any, plain: PlainTextEncoder, contents: list[str]
) -> None:
    chat = [{"role": role, "content": text} for role, text in zip(["system", "user", "assistant"], contents, strict=False)]
    harmless_chat = [{**message, "content": "x"} for message in chat]
    ids = encode_chat("m", tokenizer, plain, chat)
    control = set(plain.control_tokens.values())
    assert [i for i in ids if i in control] == [i for i in encode_chat("m", tokenizer, plain, harmless_chat) if i in control]
    decoded = plain.tokenizer.decode(ids, skip_special_tokens=False)
    for text in contents:
        assert text in decoded


def test_requests_start_no_faster_than_the_limit(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("ragassay.pipeline.engines.server.time.sleep", waits.append)
    monkeypatch.setattr("ragassay.pipeline.engines.server.time.monotonic", lambda: 100.0)
    chat_server = serve(lambda _: completion(word="Yes"))
    caller = ModelEndpoint("test", "m", ServerSettings(base_url=chat_server.url, requests_per_minute=120, concurrency=3))
    chats = [[{"role": "user", "content": str(i)}] for i in range(5)]
    task = ChatTask(parameters={"max_tokens": 1}, parse=lambda c: c.choices[0].message.content, on_refusal=str, on_failure=str)
    assert send_chats(caller, chats, task) == ["Yes"] * 5
    assert sorted(waits)[-5:] == [0.0, 0.5, 1.0, 1.5, 2.0]
