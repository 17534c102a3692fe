import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.slm.windows import ContextPiece, cut_context, pack_windows


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\S+", text)) for text in texts]


def find_word_ends(text: str) -> list[int]:
    return [m.end() for m in re.finditer(r"\S+", text)]


def find_sentences(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"[^.\s][^.]*\.?", text)]


def cut(context: list[str], budget: int) -> list[list[str]]:
    return cut_context(context, budget, count_tokens=count_words, find_sentences=find_sentences, find_token_ends=find_word_ends)


def test_a_context_that_fits_stays_whole() -> None:
    assert cut(["a b", "c"], 3) == [["a b", "c"]]


def test_adjacent_windows_share_a_passage() -> None:
    assert cut(["a b", "c", "d e", "f"], 4) == [["a b", "c"], ["c", "d e", "f"]]


def test_long_passages_are_cut_at_sentences_then_at_tokens() -> None:
    assert cut(["a b. c d. e f."], 4) == [["a b. c d. "], ["c d. e f."]]
    assert cut(["a b c d e"], 2) == [["a b"], [" c d"], [" e"]]


@given(
    st.lists(
        st.lists(st.sampled_from(["aa", "b.", "ccc", "d. e"]), min_size=1, max_size=30).map(" ".join),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 20),
)
def test_every_word_is_in_a_window_and_every_window_fits(context: list[str], budget: int) -> None:
    windows = cut(context, budget)
    assert all(sum(count_words(window)) <= budget for window in windows)
    joined = " ".join(" ".join(window) for window in windows)
    for passage in context:
        for word in passage.split():
            assert word in joined
    flat = [w for window in windows for text in window for w in text.split()]
    remaining = iter(flat)
    assert all(any(word == other for other in remaining) for passage in context for word in passage.split())  # in order


@given(st.lists(st.integers(1, 10), min_size=1, max_size=40), st.integers(10, 30))
def test_windows_contain_every_piece_in_order(sizes: list[int], budget: int) -> None:
    pieces = [ContextPiece(i, 0, 1, size) for i, size in enumerate(sizes)]
    windows = pack_windows(pieces, budget)
    assert list(dict.fromkeys(u for w in windows for u in w)) == pieces
    assert all(sum(u.tokens for u in w) <= budget for w in windows)
    assert all(len(set(a) & set(b)) <= 1 for a, b in pairwise(windows))
