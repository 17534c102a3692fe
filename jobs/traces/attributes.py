"""What the attributes of a span mean, by the conventions of OpenInference, OpenTelemetry GenAI, MLflow and OpenLLMetry."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragassay.jobs.input.documents import Document, documents_in, text_of, whole
from ragassay.jobs.input.messages import ROLE_OF
from ragassay.jobs.traces.content import question_of, response_of
from ragassay.jobs.traces.fields import first, listed, text, unquoted
from ragassay.jobs.traces.spans import RETRIEVALS, Kind, Span

KINDS = {
    "retriever": Kind.RETRIEVER,
    "retrieval": Kind.RETRIEVER,
    "reranker": Kind.RERANKER,
    "rerank": Kind.RERANKER,
    "llm": Kind.GENERATION,
    "chat_model": Kind.GENERATION,
    "generation": Kind.GENERATION,
    "chat": Kind.GENERATION,
    "completion": Kind.GENERATION,
    "text_completion": Kind.GENERATION,
    "generate_content": Kind.GENERATION,
    "embedding": Kind.EMBEDDING,
    "embeddings": Kind.EMBEDDING,
    "tool": Kind.TOOL,
    "execute_tool": Kind.TOOL,
    "evaluator": Kind.EVALUATOR,
    "guardrail": Kind.EVALUATOR,
    "evaluation": Kind.EVALUATOR,
}
"""What tools call a kind of span, in small letters; what stands for none of these is `other`."""

_RETRIEVES = re.compile(r"\bretriev(e|er|al|ers)\b")
_RERANKS = re.compile(r"\bre ?rank(er|ing)?\b")

_OF_KIND = ("openinference.span.kind", "gen_ai.operation.name", "mlflow.spanType", "traceloop.span.kind", "llm.request.type")
_OF_INPUT = (
    "gen_ai.input.messages",
    "input.value",
    "mlflow.spanInputs",
    "traceloop.entity.input",
    "gen_ai.tool.call.arguments",
)
_OF_OUTPUT = (
    "gen_ai.output.messages",
    "output.value",
    "mlflow.spanOutputs",
    "traceloop.entity.output",
    "gen_ai.tool.call.result",
)
_OF_MESSAGES = ("llm.input_messages", "gen_ai.prompt")
_OF_ANSWERS = ("llm.output_messages", "gen_ai.completion")
_OF_DOCUMENTS = ("reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents")
_OF_SESSION = ("session.id", "gen_ai.conversation.id", "langfuse.session.id", "thread.id", "mlflow.trace.session")
_OF_USER = ("user.id", "enduser.id", "langfuse.user.id", "mlflow.trace.user")
_OF_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "embedding.model_name", "mlflow.chat.model")


def kind_and_documents(
    said: Any, name: str | None, output: Any, told: Sequence[Document] | None = None
) -> tuple[Kind, tuple[Document, ...] | None]:
    """What a span is, and the documents that it has retrieved.

    What the tool calls it counts first; a chain, a tool or a span without a kind is a retrieval if its name says so and what it
    puts out is documents.

    Args:
        said: What the tool calls it.
        name: The span's name.
        output: What it put out.
        told: Documents that attributes of their own tell.
    """
    kind = KINDS.get(str(said or "").lower(), Kind.OTHER)
    words = _spaced(name)
    named = Kind.RERANKER if kind is Kind.RERANKER or _RERANKS.search(words) else Kind.RETRIEVER
    if kind in RETRIEVALS:  # some know retrievals alone
        return named, tuple(told) if told else _put_out(output)
    if kind in (Kind.OTHER, Kind.TOOL):
        found = told or (documents_in(unquoted(output)) if _RETRIEVES.search(words) or _RERANKS.search(words) else None)
        if found:
            return named, tuple(found)
    return kind, None


def _put_out(output: Any) -> tuple[Document, ...] | None:
    """The documents in the output of a retrieval; one of text is a document, None says that there is no output."""
    value = unquoted(output)
    found = documents_in(value)
    if found is not None:
        return tuple(found)
    if isinstance(value, str) and value.strip():
        return (Document(whole(value)),)
    return None if value in (None, "") else ()


def _spaced(name: str | None) -> str:
    """The words of a name in small letters."""
    return re.sub(r"[^a-z]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name or "").lower())


def with_meaning(span: Span, attributes: Mapping[str, Any], events: Sequence[Any] = ()) -> Span:
    """A span with all that its attributes tell.

    Args:
        span: It, with ids, name, times and status.
        attributes: Flat, with dots in their names (`fields.attributes_of`).
        events: As the span has them: earlier conventions put messages there.
    """
    said = next((unquoted(attributes[name]) for name in _OF_KIND if attributes.get(name)), None)
    told = next((found for name in _OF_DOCUMENTS if (found := documents_in(listed(attributes, name)))), None)
    kind, documents = kind_and_documents(said, span.name, _first_of(attributes, _OF_OUTPUT), told)
    asked = _first_of(attributes, (*_OF_MESSAGES, *_OF_INPUT) if kind is Kind.GENERATION else (*_OF_INPUT, *_OF_MESSAGES))
    said_at_last = _first_of(
        attributes, (*_OF_ANSWERS, *_OF_OUTPUT) if kind is Kind.GENERATION else (*_OF_OUTPUT, *_OF_ANSWERS)
    )
    messages = _event_messages(events)
    if asked is None:
        asked = [m for m in messages if m["role"] != "choice"] or first(attributes, "gen_ai.retrieval.query.text")
    if said_at_last is None:
        said_at_last = [{**m, "role": "assistant"} for m in messages if m["role"] == "choice"] or None
    return replace(
        span,
        kind=kind,
        question=question_of(_messages(asked)),
        response=response_of(_messages(said_at_last)),
        documents=documents,
        session=span.session or text(unquoted(first(attributes, *_OF_SESSION))),
        user=span.user or text(unquoted(first(attributes, *_OF_USER))),
        model=span.model or text(unquoted(first(attributes, *_OF_MODEL))),
    )


def _first_of(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((found for name in names if (found := listed(attributes, name)) not in (None, "", [], {})), None)


def _messages(value: Any) -> Any:
    """Messages whose fields have names such as `message.role`, as messages."""
    value = unquoted(value)
    if not isinstance(value, list):
        return value
    return [_message(item) if isinstance(item, Mapping) else item for item in value]


def _message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of OpenInference or of OpenLLMetry, or one with parts of OpenTelemetry's, as a plain one."""
    inner = item.get("message")
    fields = dict(inner) if isinstance(inner, Mapping) and "role" not in item else dict(item)
    fields = {str(name).removeprefix("message."): value for name, value in fields.items()}
    contents = listed(fields, "contents")
    if fields.get("content") is None and contents:
        fields["content"] = [_part(part) for part in contents if isinstance(part, Mapping)]
    if isinstance(fields.get("parts"), list) and "content" not in fields:
        fields["content"] = [part for part in fields.pop("parts") if isinstance(part, Mapping)]
    if "role" not in fields:
        return item
    return fields


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a message: `message_content.type`, `message_content.text`."""
    fields = part.get("message_content") if isinstance(part.get("message_content"), Mapping) else part
    return {str(name).removeprefix("message_content."): value for name, value in (fields or {}).items()}


def _event_messages(events: Sequence[Any]) -> list[dict[str, Any]]:
    """Messages that stand in events: `gen_ai.user.message`, `gen_ai.choice`, `gen_ai.content.prompt`."""
    found = []
    for event in events:
        name, values = event["name"], event["attributes"]
        role = name.removeprefix("gen_ai.").removesuffix(".message")
        content = first(values, "content", "gen_ai.prompt", "gen_ai.completion")
        if name == "gen_ai.choice":
            said = unquoted(values.get("message"))
            content = content or (said.get("content") if isinstance(said, Mapping) else said)
            content = content or values.get("message.content")
        if name in ("gen_ai.choice", "gen_ai.content.completion") and content:
            found.append({"role": "choice", "content": text_of(unquoted(content)) or str(content)})
        elif name == "gen_ai.content.prompt" and content:
            found.append({"role": "user", "content": question_of(content) or ""})
        elif role in ROLE_OF and content:
            found.append({"role": role, "content": text_of(unquoted(content)) or str(content)})
    return found
