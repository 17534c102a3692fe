"""A token tree is its prompts: every prompt is the path to its end, and no token stands twice."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.token_tree.tree import grow, size

PROMPTS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=12)


@given(PROMPTS)
def test_each_prompt_is_what_its_end_sees(prompts: list[list[int]]) -> None:
    tree = grow(prompts)
    sees = tree.sees()
    for prompt, end in zip(prompts, tree.ends, strict=True):
        path = np.flatnonzero(sees[end])
        assert tree.tokens[path].tolist() == prompt
        assert tree.positions[path].tolist() == list(range(len(prompt)))


@given(PROMPTS)
def test_a_tree_has_a_token_for_every_distinct_prefix(prompts: list[list[int]]) -> None:
    prefixes = {tuple(prompt[: n + 1]) for prompt in prompts for n in range(len(prompt))}
    assert len(grow(prompts).tokens) == len(prefixes) == size(prompts)


@given(PROMPTS, st.randoms())
def test_the_order_of_prompts_does_not_change_the_tree(prompts: list[list[int]], random: object) -> None:
    shuffled = list(prompts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = grow(prompts), grow(shuffled)
    assert one.tokens.tolist() == other.tokens.tolist()
    assert one.sizes.tolist() == other.sizes.tolist()


def test_by_hand() -> None:
    tree = grow([[5, 6, 8], [5, 6, 7], [5, 9]])
    assert tree.tokens.tolist() == [5, 6, 7, 8, 9]
    assert tree.positions.tolist() == [0, 1, 2, 2, 1]
    assert tree.sizes.tolist() == [5, 3, 1, 1, 1]
    assert tree.ends.tolist() == [3, 2, 4]
    assert tree.sees()[3].tolist() == [True, True, False, True, False]
