"""Ask about the flagged sentences of rows: each question once, what was answered before not again."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from ragassay.pipeline.contain import contain_item, describe_fault
from ragassay.pipeline.engines.text import Completion, CompletionOptions, Messages, TextEngine
from ragassay.pipeline.listener import report_answered
from ragassay.pipeline.reasoning.answer import Explanation, read_answer
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.cost_budget import CostBudget
from ragassay.pipeline.reasoning.prompt import hash_request, make_chat
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanations import RETRIED_STATUSES, AnswerStatus


class AnswerStore(Protocol):
    """Where answers are kept from the moment they come until their rows are written."""

    def get(self, request: str) -> Completion | None:
        """The answer to a request; None where there is none yet."""
        ...

    def put(self, request: str, completion: Completion) -> None:
        """Keep an answer."""
        ...


@dataclass(frozen=True)
class FlaggedResponse:
    """A response with flagged sentences.

    Attributes:
        context: Its passages as the log has them.
        question: Its question; empty where there is none.
        response: The response.
        sentences: Number in the response -> text of each flagged sentence.
    """

    context: Sequence[str | None]
    question: str
    response: str
    sentences: Mapping[int, str]


class ReasonerClient:
    """Asks a model, and remembers what it is being asked. Several threads may use it at once."""

    def __init__(
        self,
        reasoner: Reasoner,
        strategy: Strategy,
        identity: Mapping[str, Any],
        engine: TextEngine,
        answers: AnswerStore,
        purse: CostBudget | None = None,
    ) -> None:
        """Take what is asked with.

        Args:
            reasoner: How it is asked.
            strategy: How it may disagree.
            identity: What answers depend on beside the chat.
            engine: The model.
            answers: Where answers are kept.
            purse: What may be spent; None sets no limit.
        """
        self._reasoner, self._strategy, self._identity = reasoner, strategy, identity
        self._engine, self._answers, self._purse = engine, answers, purse
        schema = strategy.make_answer_schema(reasoner.categories) if reasoner.structured else None
        self._wanted = CompletionOptions(reasoner.max_tokens, schema)
        self._asking: dict[str, Future[Completion]] = {}
        self._lock = Lock()

    def explain_responses(self, responses: Sequence[FlaggedResponse]) -> list[list[dict[str, Any]]]:
        """What the model says of every flagged sentence.

        Args:
            responses: Responses with flagged sentences.

        Returns:
            For each row one entry a flagged sentence, as `schemas.explanations.EXPLANATION` has it.

        Raises:
            ModelError: The model can't be used.
        """
        chats = [contain_item(self._chats, row, _failed) for row in responses]
        answers = self._answered({request: chat for one in chats if isinstance(one, dict) for request, chat in one.values()})

        def make_entries(index: int) -> list[dict[str, Any]]:
            row_chats = chats[index]
            if isinstance(row_chats, Explanation):
                return _without_answer(responses[index], row_chats)
            return [
                self._entry(responses[index], number, request, answers[request]) for number, (request, _) in row_chats.items()
            ]

        results = []
        for index, row in enumerate(responses):
            entries = contain_item(make_entries, index, _failed)
            results.append(_without_answer(row, entries) if isinstance(entries, Explanation) else entries)
        return results

    def _chats(self, row: FlaggedResponse) -> dict[int, tuple[str, Messages]] | Explanation:
        """Sentence -> the request about it, and its chat."""
        found = {}
        passages = [passage for passage in row.context if passage]
        for number, text in row.sentences.items():
            chat = make_chat(self._strategy, self._reasoner.categories, passages, row.question, row.response, text)
            found[number] = hash_request(self._identity, chat), chat
        return found

    def _answered(self, asked: Mapping[str, Messages]) -> dict[str, Completion]:
        """An answer a request: kept, being asked by another thread, or asked now."""
        known: dict[str, Completion] = {}
        mine: dict[str, Future[Completion]] = {}
        others: dict[str, Future[Completion]] = {}
        with self._lock:
            for request in asked:
                if (kept := self._answers.get(request)) is not None:
                    known[request] = kept
                elif request in self._asking:
                    others[request] = self._asking[request]
                else:
                    mine[request] = self._asking[request] = Future()
        try:
            self._ask({request: asked[request] for request in mine}, mine)
        except BaseException as error:
            for future in mine.values():
                if not future.done():
                    future.set_exception(error)
            raise
        finally:
            with self._lock:
                for request in mine:
                    del self._asking[request]
        return known | {request: future.result() for request, future in (mine | others).items()}

    def _ask(self, chats: Mapping[str, Messages], futures: Mapping[str, Future[Completion]]) -> None:
        requests, messages = list(chats), list(chats.values())
        reserved: set[int] = set()

        def allowed(i: int) -> bool:
            if self._purse is None or not self._purse.reserve(messages[i]):
                return self._purse is None
            reserved.add(i)
            return True

        def done(i: int, completion: Completion) -> None:
            report_answered(1, completion.prompt_tokens)
            if completion.status not in RETRIED_STATUSES:
                self._answers.put(requests[i], completion)
            if self._purse and i in reserved:
                self._purse.settle(messages[i], completion)
            futures[requests[i]].set_result(completion)

        if requests:
            self._engine.complete(messages, self._wanted, done, allowed)

    def _entry(self, row: FlaggedResponse, number: int, request: str, completion: Completion) -> dict[str, Any]:
        if completion.text is None:
            return _entry(number, Explanation(completion.status, completion.error), completion, request)
        found = read_answer(completion.text, self._strategy, self._reasoner.categories, row.context)
        if found.status is AnswerStatus.UNREADABLE and completion.error:
            found = Explanation(found.status, completion.error)
        return _entry(number, found, completion, request)


def _failed(error: Exception) -> Any:
    return Explanation(AnswerStatus.ERROR, describe_fault(error))


def _without_answer(row: FlaggedResponse, explanation: Explanation) -> list[dict[str, Any]]:
    """A row whose chats could not be made, or whose answers not be read."""
    return [_entry(number, explanation, Completion(AnswerStatus.ERROR), None) for number in row.sentences]


def _entry(number: int, explanation: Explanation, completion: Completion, request: str | None) -> dict[str, Any]:
    return {
        "sentence": number,
        "category": explanation.category,
        "reason": explanation.reason,
        "evidence": explanation.evidence._asdict() if explanation.evidence else None,
        "consistent": explanation.consistent,
        "answer": completion.text,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "request": request,
        "status": explanation.status.value,
        "error": explanation.error,
    }


def select_flagged_sentences(sentences: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Number in the response -> text of each flagged sentence, from a row of `scored/`."""
    return {number: sentence["text"] for number, sentence in enumerate(sentences) if sentence["flagged"]}
