"""Every prompt is the path to its last token in the tree, and no token occurs twice."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.token_tree import attention
from ragassay.pipeline.token_tree.attention import split_into_blocks
from ragassay.pipeline.token_tree.tree import build_tree, count_tree_tokens

PROMPTS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=12)


@given(PROMPTS)
def test_each_prompt_is_the_path_to_its_last_token(prompts: list[list[int]]) -> None:
    tree = build_tree(prompts)
    attends = tree.attention_mask()
    for prompt, end in zip(prompts, tree.prompt_ends, strict=True):
        path = np.flatnonzero(attends[end])
        assert tree.tokens[path].tolist() == prompt
        assert tree.positions[path].tolist() == list(range(len(prompt)))


@given(PROMPTS)
def test_a_tree_has_a_token_for_every_distinct_prefix(prompts: list[list[int]]) -> None:
    prefixes = {tuple(prompt[: n + 1]) for prompt in prompts for n in range(len(prompt))}
    assert len(build_tree(prompts).tokens) == len(prefixes) == count_tree_tokens(prompts)


@given(PROMPTS, st.randoms())
def test_the_order_of_prompts_does_not_change_the_tree(prompts: list[list[int]], random: object) -> None:
    shuffled = list(prompts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    tree, same = build_tree(prompts), build_tree(shuffled)
    assert tree.tokens.tolist() == same.tokens.tolist()
    assert tree.subtree_sizes.tolist() == same.subtree_sizes.tolist()


@given(PROMPTS, st.integers(1, 5))
def test_the_blocks_are_the_attention_of_the_tree(prompts: list[list[int]], block_size: int) -> None:
    tree = build_tree(prompts)
    attends = np.zeros((len(tree.tokens), len(tree.tokens)), dtype=bool)
    with patch.object(attention, "BLOCK_SIZE", block_size):
        blocks = split_into_blocks(tree, "cpu")
    for block in blocks:
        attends[np.ix_(np.arange(block.start, block.stop), block.keys.numpy())] = block.mask.numpy() == 0
    assert (attends == tree.attention_mask()).all()
    assert all((block.mask == 0).any(dim=0).all() for block in blocks)  # no key that no query attends to


def test_a_small_tree_equals_that_built_by_hand() -> None:
    tree = build_tree([[5, 6, 8], [5, 6, 7], [5, 9]])
    assert tree.tokens.tolist() == [5, 6, 7, 8, 9]
    assert tree.positions.tolist() == [0, 1, 2, 2, 1]
    assert tree.subtree_sizes.tolist() == [5, 3, 1, 1, 1]
    assert tree.prompt_ends.tolist() == [3, 2, 4]
    assert tree.attention_mask()[3].tolist() == [True, True, False, True, False]
