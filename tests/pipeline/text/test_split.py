import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.detectors.terms import load_stop_words
from ragassay.pipeline.text.characters import remove_invisible
from ragassay.pipeline.text.split import MAX_SENTENCE_CHARS, load_splitter, split_sentences
from tests.raises import raises


@pytest.fixture(scope="module")
def nlp() -> Any:
    return load_splitter("sentencizer", "en")


CASES = {
    "The limit is 25 km/h. Helmets are worn until 6 p.m. Riders of 16 may go 5 m. Open from 6 p.m. Monday on.": [
        "The limit is 25 km/h.",
        "Helmets are worn until 6 p.m.",
        "Riders of 16 may go 5 m.",
        "Open from 6 p.m. Monday on.",
    ],
    "The shop opens at 9 a.m. The fee is $1,200.50, see Dr. Lee in Room No. 4.": [
        "The shop opens at 9 a.m.",
        "The fee is $1,200.50, see Dr. Lee in Room No. 4.",
    ],
    "It takes 3.5 hours, e.g. on Mon. or Tue. in the U.S. market. Why? No. You can't!": [
        "It takes 3.5 hours, e.g. on Mon. or Tue. in the U.S. market.",
        "Why?",
        "No.",
        "You can't!",
    ],
    "Rules:\n- Wear a hat\n- Bring 2 pens; no ink\n1. First. Then second.\n\nDone": [
        "Rules:",
        "- Wear a hat",
        "- Bring 2 pens; no ink",
        "1. First.",
        "Then second.",
        "Done",
    ],
    "Run this:\n```python\nx = 1\nprint(x)\n```\nThat is all.": ["Run this:", "x = 1", "print(x)", "That is all."],
    "A paragraph that a terminal has wrapped at some column continues in\nthe next line. And ends.": [
        "A paragraph that a terminal has wrapped at some column continues in\nthe next line.",
        "And ends.",
    ],
    "今天天气好。我们去公园！": ["今天天气好。", "我们去公园！"],
    "```The limit is 5 days.```": ["```The limit is 5 days."],
    "the shop opens at nine. refunds take six weeks! why? ask ada": [
        "the shop opens at nine.",
        "refunds take six weeks!",
        "why?",
        "ask ada",
    ],
    "Use a v. small pan (approx. five cups, min. size), e.g. an iron one.": [
        "Use a v. small pan (approx. five cups, min. size), e.g. an iron one."
    ],
    'He asked (in Hello! magazine) "Why?" and left, etc.) on Sat. and Sun. by a link such as a?include=b': [
        'He asked (in Hello! magazine) "Why?" and left, etc.) on Sat. and Sun. by a link such as a?include=b'
    ],
    'He left. "She stayed." (They slept.) **All** slept. “Why?” ¡Eh! ¿Qué?': [
        "He left.",
        '"She stayed."',
        "(They slept.)",
        "**All** slept.",
        "“Why?”",
        "¡Eh!",
        "¿Qué?",
    ],
    "今天天气好｡我们去。「公园」！在３．５楼": ["今天天气好｡", "我们去。", "「公园」！", "在３．５楼"],
    "開きます．本は二週間": ["開きます．", "本は二週間"],
    "यह है। वह है।ये": ["यह है।", "वह है।", "ये"],
    "یہ ہے۔ وہ؟ہاں": ["یہ ہے۔", "وہ؟", "ہاں"],
    "እሱ ነው። እሷ ናት።": ["እሱ ነው።", "እሷ ናት።"],
    " \n\t ": [],
    "...": [],
}


@pytest.mark.parametrize("text", CASES)
def test_responses_are_split_as_expected(nlp: Any, text: str) -> None:
    assert [text[a:b] for a, b in split_sentences(nlp, [text])[0]] == CASES[text]


NO_ENDS = [
    "The total no. of items is 5.",
    "It weighs five kg. and is 10 cm. wide, 10 in. tall.",
    "See sect. two, para. three at a govt. office.",
    "Heat it to 5 deg. celsius.",
    "Im 3. und vierten Quartal (Abb. zwei und Tab. drei) stieg es.",
    "Hay aprox. cinco.",
    "Il vient p. ex. le lundi, env. dix fois.",
    "Yahoo! is big.",
    "Sir Gilbert Gerard, 1st Bt. of Flambards, Mdx.",
    "A member of the Red Hot C... died.",
    "The phrase D'oh! of Homer is known.",
]


@pytest.mark.parametrize("text", NO_ENDS)
def test_a_short_word_before_a_lower_case_letter_ends_no_sentence_in_a_capitalized_text(nlp: Any, text: str) -> None:
    assert [text[a:b] for a, b in split_sentences(nlp, [text])[0]] == [text]


def test_long_words_and_questions_end_sentences_before_lower_case_letters(nlp: Any) -> None:
    text = "The shop is popular. iPhone users like it a lot. `ls/x` is code. Great question! you can. Was it in New York? no."
    assert [text[a:b] for a, b in split_sentences(nlp, [text])[0]] == [
        "The shop is popular.",
        "iPhone users like it a lot.",
        "`ls/x` is code.",
        "Great question!",
        "you can.",
        "Was it in New York?",
        "no.",
    ]


CITED = {
    "The shop opens at nine. [1] Refunds take six weeks. [2]": ["The shop opens at nine. [1]", "Refunds take six weeks. [2]"],
    "It opens at nine.[1][2] Refunds take six.[3, 4]": ["It opens at nine.[1][2]", "Refunds take six.[3, 4]"],
    "It opens. (Passage 1) It closes. (Source: Handbook, page 4)": [
        "It opens. (Passage 1)",
        "It closes. (Source: Handbook, page 4)",
    ],
    "it opens. [1] it closes. [2]": ["it opens. [1]", "it closes. [2]"],
    "- It opens. [1]\n- It closes.\n  [Source 2]": ["- It opens. [1]", "- It closes.\n  [Source 2]"],
    "今天天气好。[1] 我们去公园。【2】": ["今天天气好。[1]", "我们去公园。【2】"],
    "It opens![1] It closes?[2] Yes.": ["It opens![1]", "It closes?[2]", "Yes."],
    "It opens [1]. It closes [2].": ["It opens [1].", "It closes [2]."],
    "[1] It opens. [2] It closes.": ["[1] It opens.", "[2] It closes."],
    "It opens.\n\n[1]\n[2]": ["It opens.\n\n[1]\n[2]"],
    "[1]\n[2]\nIt opens.": ["[1]\n[2]\nIt opens."],
    "It opens. (Passage 2 states at six.) It closes.": ["It opens.", "(Passage 2 states at six.)", "It closes."],
    "It begins. [1] is odd. [1](https://a.org) It ends.": ["It begins.", "[1] is odd.", "[1](https://a.org) It ends."],
    "[1]": ["[1]"],
}


@pytest.mark.parametrize("text", CITED)
def test_citations_belong_to_the_sentence_before_them(nlp: Any, text: str) -> None:
    assert [text[a:b] for a, b in split_sentences(nlp, [text])[0]] == CITED[text]


SPACES = ["\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\t", "\xa0", "\u3000", "\u200b"]
SPECIAL = ["\x00", "\ufeff", "\u200f", "\u202e", "👩\u200d👩\u200d👧", "e\u0301", "\u0301", "İ", "ſ", "²", "٣", "ﷺ"]
MARKS = ['"', "“", "(", ")", "*", "_", "#"]
ENDS = ["。", "｡", "．", "।", "approx.", "No.", "a?b", "he is.", "it is! ", "```", "```py", "~~~ py", "```Yes, 5."]
CITATIONS = ["[1]", "So.[2]", "(Passage 3)", "[4](a)"]
LONG = ["!" * 300, "a." * 150, "'s" * 200, "。" * 300, "天" * 300 + "。"]
pieces = st.sampled_from(
    [
        "The fee is $5.",
        "9 a.m.",
        "- item",
        "1.",
        "\n",
        "\n\n",
        " ",
        "Dr. Lee",
        "no",
        "é😀",
        "| a | b |",
        "?!",
        "x" * 90,
        *SPACES,
        *SPECIAL,
        *MARKS,
        *ENDS,
        *CITATIONS,
        *LONG,
    ]
)
texts = st.lists(pieces, max_size=14).map(" ".join) | st.lists(pieces, max_size=14).map("".join) | st.text(max_size=80)


FENCE = re.compile(r"(?:```|~~~)\s*[\w+#.-]*")


def blank_fences(text: str) -> str:
    """Replace the fence lines of a text by spaces. A line with a claim is not a fence line."""
    lines = text.splitlines(keepends=True)
    return "".join(" " * len(line) if FENCE.fullmatch(remove_invisible(line)[0].strip()) else line for line in lines)


@given(st.lists(texts, max_size=5))
def test_sentences_cover_every_letter_once_in_order(nlp: Any, responses: list[str]) -> None:
    for text, spans in zip(responses, split_sentences(nlp, responses), strict=True):
        whole = blank_fences(text)
        last = 0
        for start, end in [*spans, (len(text), len(text))]:
            assert last <= start <= end <= len(text)
            assert text[start:end] == text[start:end].strip()
            assert not any(c.isalnum() for c in whole[last:start])
            last = end
        assert all(start < end for start, end in spans)
        assert len(spans) == 1 or not any(re.fullmatch(r"\[\d\]", text[start:end]) for start, end in spans)


def test_a_megabyte_without_punctuation_is_cut_into_short_sentences(nlp: Any) -> None:
    text = "word " * 200_000 + "x" * 100_000
    spans = split_sentences(nlp, [text])[0]
    assert max(b - a for a, b in spans) <= MAX_SENTENCE_CHARS
    assert sum(text[a:b].count("word") for a, b in spans) == 200_000
    assert sum(text[a:b].count("x") for a, b in spans) == 100_000


def test_long_words_stay_whole_in_the_result(nlp: Any) -> None:
    link = "https://example.org/" + "a-b/" * 200
    text = f"See {link} for more. Wait{'!' * 400} Then go. {'好' * 300}。{'好' * 20}。"
    assert [text[a:b] for a, b in split_sentences(nlp, [text])[0]] == [
        f"See {link} for more.",
        f"Wait{'!' * 400}",
        "Then go.",
        "好" * 300 + "。",
        "好" * 20 + "。",
    ]


def test_in_other_languages_a_lower_case_letter_begins_a_sentence_only_in_a_lower_case_text() -> None:
    nlp = load_splitter("sentencizer", "de")
    texts = ["Er kam am 3. oktober. dann ging er evtl. heim.", "er kam am 3. oktober. dann ging er evtl. heim."]
    assert [[text[a:b] for a, b in spans] for text, spans in zip(texts, split_sentences(nlp, texts), strict=True)] == [
        [texts[0]],
        ["er kam am 3. oktober.", "dann ging er evtl. heim."],
    ]


@pytest.mark.parametrize("language", ["ja", "ko", "th", "vi", "zh", "hi", "xx"])
def test_languages_need_no_extra_package(language: str) -> None:
    text = "図書館は九時に開きます。本は二週間借りられます｡ Ada geht. Bo kommt."
    assert len(split_sentences(load_splitter("sentencizer", language), [text])[0]) == 4
    assert isinstance(load_stop_words(language), frozenset)


def test_a_batch_is_split_like_single_texts(nlp: Any) -> None:
    together = split_sentences(nlp, list(CASES))
    assert together == [split_sentences(nlp, [text])[0] for text in CASES]


def test_an_unknown_pipeline_or_language_is_named_in_the_error() -> None:
    with raises("config.splitter-not-installed", pipeline="xx_not_there"):
        load_splitter("xx_not_there", "en")
    with raises("config.unknown-language", language="klingon"):
        load_splitter("sentencizer", "klingon")
    with raises("config.unknown-language", language="klingon"):  # detectors need its stop words
        load_splitter("en_core_web_sm", "klingon")
