"""A budget is never exceeded, for any answers in any order."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.engines.price import Price
from ragassay.pipeline.engines.text_protocol import Completion
from ragassay.pipeline.reasoning.cost_budget import CostBudget, count_max_tokens
from ragassay.schemas.explanation_columns import AnswerStatus
from tests.raises import raises

PRICE = Price(input=1.0, output=2.0)
CHAT = [{"role": "user", "content": "x" * 84}]  # at most 100 tokens
MILLION = 1_000_000


ANSWER = st.tuples(st.integers(1, 100), st.integers(0, 50), st.booleans())


@given(st.integers(0, 2000), st.lists(ANSWER, max_size=30))
def test_the_cost_is_within_the_budget(dollars: int, answers: list[tuple[int, int, bool]]) -> None:
    budget = CostBudget(PRICE, dollars / MILLION, 50)
    cost = 0

    def ask(answer: tuple[int, int, bool]) -> bool:
        nonlocal cost
        if not budget.reserve(CHAT):
            return False
        prompt_tokens, completion_tokens, is_failed = answer
        cost += prompt_tokens + 2 * completion_tokens
        if is_failed:
            completion = Completion(AnswerStatus.ERROR, None, 0, completion_tokens)
        else:
            completion = Completion(AnswerStatus.OK, "{}", prompt_tokens, completion_tokens)
        budget.settle(CHAT, completion)
        return True

    with ThreadPoolExecutor(4) as threads:
        is_sent = list(threads.map(ask, answers))
    assert cost <= dollars
    if not all(is_sent) and not any(is_failed for _, _, is_failed in answers):
        # Up to rounding, every affordable question is sent.
        assert dollars - cost <= count_max_tokens(CHAT) + 2 * 50


def test_a_server_without_token_counts_is_refused() -> None:
    budget = CostBudget(PRICE, 1.0, 50)
    assert budget.reserve(CHAT)
    with raises("explain.no-usage"):
        budget.settle(CHAT, Completion(AnswerStatus.OK, "{}"))
