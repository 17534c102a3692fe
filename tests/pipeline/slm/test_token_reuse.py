"""Count the tokens that an engine with a prefix cache computes."""

from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.slm.token_reuse import PrefixTree

PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=8)


def count_by_definition(prompts: list[list[int]], index: int, block: int) -> int:
    """Count by the definition: subtract the longest run of whole blocks, without the last token, that starts an earlier
    prompt."""
    prompt = prompts[index]
    shared = max((next((i for i, (a, b) in enumerate(zip(prompt, earlier, strict=False)) if a != b),
                       min(len(prompt), len(earlier))) for earlier in prompts[:index]), default=0)  # fmt: skip
    return len(prompt) - min(shared, len(prompt) - 1) // block * block


@given(PROMPTS, st.integers(1, 4))
def test_counts_agree_with_the_definition(prompts: list[list[int]], block: int) -> None:
    tree = PrefixTree(block)
    assert [tree.add(p) for p in prompts] == [count_by_definition(prompts, i, block) for i in range(len(prompts))]


@given(PROMPTS)
def test_without_blocks_nothing_is_reused(prompts: list[list[int]]) -> None:
    assert list(map(PrefixTree(0).add, prompts)) == list(map(len, prompts))


@given(PROMPTS, st.integers(1, 4))
def test_larger_blocks_reuse_no_more(prompts: list[list[int]], block: int) -> None:
    small, large = PrefixTree(block), PrefixTree(2 * block)
    assert sum(map(small.add, prompts)) <= sum(map(large.add, prompts))
