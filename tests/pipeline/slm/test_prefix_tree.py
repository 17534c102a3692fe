"""Tokens that an engine with a prefix cache has to run."""

from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.slm.prefix_tree import PrefixTree

PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=8)


def by_definition(prompts: list[list[int]], at: int, block: int) -> int:
    """The longest run of whole blocks, short of the last token, that an earlier prompt begins with."""
    prompt = prompts[at]
    shared = max((next((i for i, (a, b) in enumerate(zip(prompt, earlier, strict=False)) if a != b),
                       min(len(prompt), len(earlier))) for earlier in prompts[:at]), default=0)  # fmt: skip
    return len(prompt) - min(shared, len(prompt) - 1) // block * block


@given(PROMPTS, st.integers(1, 4))
def test_it_is_what_the_definition_says(prompts: list[list[int]], block: int) -> None:
    tree = PrefixTree(block)
    assert [tree.add(p) for p in prompts] == [by_definition(prompts, i, block) for i in range(len(prompts))]


@given(PROMPTS)
def test_without_blocks_nothing_is_reused(prompts: list[list[int]]) -> None:
    assert list(map(PrefixTree(0).add, prompts)) == list(map(len, prompts))


@given(PROMPTS, st.integers(1, 4))
def test_larger_blocks_reuse_no_more(prompts: list[list[int]], block: int) -> None:
    small, large = PrefixTree(block), PrefixTree(2 * block)
    assert sum(map(small.add, prompts)) <= sum(map(large.add, prompts))
