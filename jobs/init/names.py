"""What columns of logs are called: names that people give to a question, a context, a response, an id, a label."""

import re
from enum import StrEnum


class Role(StrEnum):
    """What a column is to a job."""

    QUESTION = "question"
    CONTEXT = "context"
    RESPONSE = "response"


SYNONYMS = {
    Role.QUESTION: (
        "question", "query", "user_query", "user_question", "prompt", "user_prompt", "user_input", "input", "user_message",
        "search_query", "instruction", "request", "utterance", "q",
    ),
    Role.CONTEXT: (
        "context", "contexts", "passages", "retrieved_docs", "retrieved_documents", "retrieved_passages", "retrieved_contexts",
        "retrieved_context", "retrieved_chunks", "source_documents", "documents", "docs", "chunks", "evidence", "evidences",
        "sources", "search_results", "snippets", "knowledge", "grounding", "premise", "passage", "document", "doc", "article",
        "source", "references", "background", "ctx",
    ),
    Role.RESPONSE: (
        "response", "answer", "output", "completion", "generation", "generated_answer", "generated_text", "model_output",
        "model_response", "model_answer", "llm_response", "llm_output", "llm_answer", "assistant_response", "assistant_message",
        "assistant", "bot_response", "ai_response", "rag_answer", "final_answer", "prediction", "reply", "claim", "statement",
        "hypothesis", "summary", "a",
    ),
}  # fmt: skip
"""Names of each, the usual ones first. A claim stands before evidence as a response does before its context."""

IDS = ("row_id", "request_id", "id", "trace_id", "uuid", "guid", "log_id", "record_id", "event_id", "message_id", "example_id")
ID_ENDS = frozenset({"id", "uuid", "guid", "key", "qid"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LABELS = _words("label labels hallucinated hallucination supported unsupported faithful grounded correct wrong annotation")
TALK = _words("messages conversation chat dialog dialogue turns")

_FILLERS = _words("text str string raw full final content body value values list the of column col field json")
_ABOUT = _words(
    """
    id ids uuid guid hash len length count size tokens token time timestamp ts at date day ms latency cost score scores label
    labels lang language model url urls uri name names title titles type kind embedding embeddings vector version status index
    rank truth gold expected reference ground ideal target feedback rating template
    """
)
_COUNTS = _words("num n is has gold expected reference ground ideal target system")
"""Words at the end of a name, or at its beginning, by which it is about a text, or is a text that no model wrote."""

EXACT, WITHOUT_FILLERS, LAST_WORD, SOME_WORD = 10.0, 8.5, 7.0, 5.0


def parts_of(name: str) -> list[str]:
    """Words of a column's name in small letters: `userQuery`, `User Query` and `USER_QUERY` have the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [part.lower() for part in re.findall(r"[^\W_]+", spaced)]


def fit_of_name(name: str, role: Role) -> float:
    """How well a name fits a role: 0 for not at all, 10 for the first of its synonyms."""
    parts = parts_of(name)
    known = {synonym: rank for rank, synonym in enumerate(SYNONYMS[role])}

    def rated(words: list[str], best: float) -> float:
        rank = known.get("_".join(words))
        return 0.0 if rank is None else best - 0.03 * rank

    if found := rated(parts, EXACT):
        return found
    if not parts or is_about(name):
        return 0.0
    words = [part for part in parts if part not in _FILLERS]
    if found := rated(words, WITHOUT_FILLERS):
        return found
    ends = [rated(end[start:], LAST_WORD) for end in (parts, words) for start in range(1, len(end))]
    return max([*ends, *(rated([word], SOME_WORD) for word in words), 0.0])


def is_about(name: str) -> bool:
    """Whether a name is that of something about a text, such as its id or length, or of a text that no model wrote."""
    parts = parts_of(name)
    return bool(parts) and (parts[-1] in _ABOUT or parts[0] in _COUNTS)


def fit_of_id(name: str) -> float:
    """How well a name fits an id of rows; 0 for not at all."""
    parts = parts_of(name)
    joined = "_".join(parts)
    if joined in IDS:
        return EXACT - 0.03 * IDS.index(joined)
    return SOME_WORD if parts and parts[-1] in ID_ENDS else 0.0
