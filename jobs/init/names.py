"""What columns of logs are called: names that people give to a question, a context, a response, an id, a label."""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum


class Role(StrEnum):
    """What a column is to a job."""

    QUESTION = "question"
    CONTEXT = "context"
    RESPONSE = "response"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SYNONYMS = {
    Role.QUESTION: _words(
        """question query user_query user_question prompt user_prompt user_input input user_message search_query instruction
        request utterance q"""
    ),
    Role.CONTEXT: _words(
        """context contexts passages retrieved_docs retrieved_documents retrieved_passages retrieved_contexts retrieved_context
        retrieved_chunks source_documents documents docs chunks evidence evidences sources search_results snippets knowledge
        grounding premise passage document doc article source references background ctx"""
    ),
    Role.RESPONSE: _words(
        """response answer output completion generation generated_answer generated_text model_output model_response model_answer
        llm_response llm_output llm_answer assistant_response assistant_message assistant bot_response ai_response rag_answer
        final_answer prediction reply claim statement hypothesis summary a"""
    ),
}
"""Names of each, the usual ones first. A claim stands before evidence as a response does before its context."""

IDS = _words("row_id request_id id trace_id uuid guid log_id record_id event_id message_id example_id")
ID_ENDS = _words("id uuid guid key qid")
LABELS = _words("label labels hallucinated hallucination supported unsupported faithful grounded correct wrong annotation")
TALK = _words("messages conversation chat dialog dialogue turns")

_FILLERS = _words("text str string raw full final content body value values list the of column col field json")
_ABOUT = _words(
    """id ids uuid guid hash len length count size tokens token time timestamp ts at date day ms latency cost score scores label
    labels lang language model url urls uri name names title titles type kind embedding embeddings vector version status index
    rank truth gold expected reference ground ideal target feedback rating template"""
)
_COUNTS = _words("num n is has gold expected reference ground ideal target system")
"""Words at the end of a name, or at its beginning, by which it is about a text, or is a text that no model wrote."""

EXACT, WITHOUT_FILLERS, LAST_WORD, SOME_WORD = 10.0, 8.5, 7.0, 5.0


def words_of_name(name: str) -> list[str]:
    """Words of a column's name in small letters: `userQuery`, `User Query` and `USER_QUERY` have the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", spaced)]


def rate_name(name: str, role: Role) -> float:
    """How well a name fits a role: 0 for not at all, 10 for the first of its synonyms."""
    words = words_of_name(name)
    telling = [word for word in words if word not in _FILLERS]
    ends = [part[start:] for part in (words, telling) for start in range(1, len(part))]
    tries = [(words, EXACT)]
    if not is_about(name):
        tries += [(telling, WITHOUT_FILLERS), *((end, LAST_WORD) for end in ends), *(([word], SOME_WORD) for word in telling)]
    return max(_rate(SYNONYMS[role], part, best) for part, best in tries)


def rate_id(name: str) -> float:
    """How well a name fits an id of rows; 0 for not at all."""
    words = words_of_name(name)
    return _rate(IDS, words, EXACT) or (SOME_WORD if words and words[-1] in ID_ENDS else 0.0)


def _rate(names: Sequence[str], words: list[str], best: float) -> float:
    name = "_".join(words)
    return best - 0.03 * names.index(name) if name in names else 0.0


def is_about(name: str) -> bool:
    """Whether a name is that of something about a text, such as its id or length, or of a text that no model wrote."""
    words = words_of_name(name)
    return bool(words) and (words[-1] in _ABOUT or words[0] in _COUNTS)


def names_talk(name: str) -> bool:
    """Whether a name is that of a column of conversations."""
    return any(word in TALK for word in words_of_name(name)[-1:])


def show(name: str) -> str:
    """A name in a comment or a message: in one line, whatever it holds."""
    is_plain = name.isprintable() and name.strip() == name and "`" not in name
    return f"`{name}`" if is_plain else ascii(name)


def show_all(names: Iterable[str]) -> str:
    """Names in a comment or a message."""
    return ", ".join(map(show, names))
