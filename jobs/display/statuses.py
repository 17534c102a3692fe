"""Name the reasons of unscorable rows in plain words."""

from collections.abc import Mapping

from ragassay.schemas.columns import Status

STATUS_WORDS: dict[str, str] = {
    Status.NO_QUESTION: "no question",
    Status.NO_CONTEXT: "no context",
    Status.NO_RESPONSE: "no response",
    Status.EMPTY_RESPONSE: "empty response",
    Status.TOO_LONG: "too long for the model",
    Status.UNREADABLE: "unreadable",
    Status.NOT_JUDGED: "nothing that the members can judge",
    Status.LANGUAGE_NOT_MEASURED: "in a language that was not measured",
    Status.NO_ANSWER: "no answer of the model",
    Status.ERROR: "error of RAGAssay",
}


def describe_status(status: str) -> str:
    """Return the reason of an unscorable row in plain words."""
    return STATUS_WORDS.get(status, status)


def describe_reasons(counts: Mapping[str, int]) -> str:
    """Return the reasons of unscorable rows with their numbers, the most frequent first; empty without any."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{rows:,} {describe_status(status)}" for status, rows in ordered if status != Status.OK and rows)
