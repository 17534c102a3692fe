"""A budget is never overdrawn, whatever comes back and in whatever order."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.engines.text import Completion
from ragassay.pipeline.reasoning.config import Price
from ragassay.pipeline.reasoning.cost_budget import CostBudget, count_max_tokens
from ragassay.schemas.explanations import AnswerStatus
from tests.raises import raises

PRICE = Price(input=1.0, output=2.0)
CHAT = [{"role": "user", "content": "x" * 84}]  # at most 100 tokens
MILLION = 1_000_000


ANSWER = st.tuples(st.integers(1, 100), st.integers(0, 50), st.booleans())


@given(st.integers(0, 2000), st.lists(ANSWER, max_size=30))
def test_what_is_spent_is_within_the_budget(budget: int, answers: list[tuple[int, int, bool]]) -> None:
    purse = CostBudget(PRICE, budget / MILLION, 50)
    spent = 0

    def ask(one: tuple[int, int, bool]) -> bool:
        nonlocal spent
        if not purse.reserve(CHAT):
            return False
        prompt, completion, trouble = one
        spent += prompt + 2 * completion
        text = None if trouble else "{}"
        purse.settle(
            CHAT, Completion(AnswerStatus.ERROR if trouble else AnswerStatus.OK, text, 0 if trouble else prompt, completion)
        )
        return True

    with ThreadPoolExecutor(4) as threads:
        sent = list(threads.map(ask, answers))
    assert spent <= budget
    if not all(sent) and not any(trouble for _, _, trouble in answers):
        assert (
            budget - spent <= count_max_tokens(CHAT) + 2 * 50
        )  # up to rounding, no question that there was money for was left out


def test_a_server_that_does_not_count_takes_no_budget() -> None:
    purse = CostBudget(PRICE, 1.0, 50)
    assert purse.reserve(CHAT)
    with raises("explain.no-usage"):
        purse.settle(CHAT, Completion(AnswerStatus.OK, "{}"))
