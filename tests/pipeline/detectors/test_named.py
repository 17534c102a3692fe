"""Entities in one normal form, by hand."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.detectors import named
from ragassay.pipeline.detectors.named import DAYS, MONTHS, EntityKind, find_entities, known_keys


def missing(response: str, context: str) -> list[str]:
    known = known_keys([context])
    return [entity.text for entity in find_entities(response) if not entity.is_in(known)]


def kinds(text: str) -> dict[str, str]:
    return {entity.text: entity.kind.value for entity in find_entities(text, stop_words=frozenset({"the", "on", "it"}))}


@pytest.mark.parametrize(
    ("response", "context"),
    [
        ("It opens at 9 AM.", "It opens at 09:00."),
        ("It opens at 9 a.m.", "Doors: 9:00"),
        ("It closes at 5:30 pm", "It closes at 17:30"),
        ("at noon", "at 12:00 p.m."),
        ("$1.2k was paid", "They paid 1,200 dollars"),
        ("1,200 dollars", "$1,200.00"),
        ("1 form is needed", "one form is needed"),
        ("twenty-five people", "25 people"),
        ("one hundred and twenty people", "120 people"),
        ("two million", "2,000,000"),
        ("47% growth", "growth of 47 percent"),
        ("three years", "36 months"),
        ("two weeks", "14 days"),
        ("90 minutes", "1.5 hours"),
        ("half an hour", "30 minutes"),
        ("60 minutes", "an hour"),
        ("a 5-day course", "a course of five days"),
        ("on 3 March 2024", "2024-03-03"),
        ("March 3rd", "on 3 March 2024"),
        ("March 2024", "3 March 2024"),
        ("in 2024", "3 March 2024"),
        ("3/4/2024", "4 March 2024"),
        ("on Wednesday", "Monday to Friday"),
        ("on Tuesdays", "on weekdays"),
        ("the third step", "step 3"),
        ("See Oduya's office", "Ms. Oduya will call"),
    ],
)
def test_one_thing_said_in_two_ways_is_known(response: str, context: str) -> None:
    assert find_entities(response) and missing(response, context) == []


@pytest.mark.parametrize(
    ("response", "context", "what"),
    [
        ("It opens at 9 AM.", "It opens at 9 PM.", ["9 AM"]),
        ("three days", "three years", ["three days"]),
        ("47%", "47 dollars", ["47%"]),
        ("$20", "€20", ["$20"]),
        ("on 3 March 2024", "on 3 March", ["3 March 2024"]),
        ("on 3 March", "on 4 March 2024", ["3 March"]),
        ("on Saturday", "Monday to Friday", ["Saturday"]),
        ("the second step", "step 3", ["second"]),
        ("They met Ms. Oduya at Quillport Transit.", "Quillport has no bus.", ["Oduya", "Quillport Transit"]),
    ],
)
def test_other_things_are_missing(response: str, context: str, what: list[str]) -> None:
    assert missing(response, context) == what


def test_kinds() -> None:
    text = "On 3 March 2024 the first 12 of 40 guests paid $5 at Quillport Transit, step 2 of the A320 plan, at 9:30 am in Q3."
    assert kinds(text) == {
        "3 March 2024": "date", "first": "sequence", "12": "number", "40": "number", "$5": "number",
        "Quillport Transit": "name", "step 2": "sequence", "A320": "name", "9:30 am": "date", "Q3": "date",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "One of them said no.",
        "1. Call the desk.",
        "2) Wait.",
        "First, call the desk.",
        "At first it works.",
        "As passage 2 says, and passages 1 and 3.",
        "It is free.",
        "$20 an hour"[4:],
    ],
)
def test_what_names_nothing(text: str) -> None:
    assert find_entities(text, stop_words=frozenset({"one", "it", "as", "at", "first"})) == []


def test_a_capital_at_the_start_is_no_name_unless_it_is_written_like_one() -> None:
    assert kinds("Guests pay. NASA pays. The Quillport Transit pays.") == {"NASA": "name", "Quillport Transit": "name"}


def test_names_of_a_recogniser_take_the_place_of_capitals() -> None:
    found = find_entities("Guests of Ada pay 5 dollars", names=["Ada Lovelace"])
    assert {(e.kind, e.text) for e in found} == {(EntityKind.NUMBER, "5 dollars"), (EntityKind.NAME, "Ada Lovelace")}


@given(st.integers(0, 10**7), st.sampled_from(["", " days", "%", " dollars", " km"]))
def test_a_number_is_known_to_itself_in_every_spelling(number: int, unit: str) -> None:
    for spelling in (f"{number}{unit}", f"{number:,}{unit}"):
        assert missing(f"about {spelling} then", f"so {number}{unit}.") == []


WORDS = [
    *MONTHS,
    *DAYS,
    *named._UNITS,
    *named._VALUES,
    *named._SCALES,
    *named._ORDINALS,
    *named._CURRENCIES,
    *named._TRIGGERS,
    "am",
    "pm",
    "p.m.",
    "o'clock",
    "\n",
]
WORDS += ["a", "an", "and", "of", "to", "through", "percent", "per cent", "Ada", "Oduya's", "th", "st", "s", *'.,:/-–%(" ']
WORDS += ["1", "5", "12", "30", "2020", "3.5", "1,200", "9" * 400]
# The first of each pair becomes the second.
LOOKALIKES = ["", "sſSſ", "k\u212aK\u212a", "iİIı", "iıIİ", "å\u212bÅ\u212b", "0０5５", "1١3٣", "2²1①"]


@st.composite
def odd_texts(draw: st.DrawFn) -> str:
    """Words that numbers, dates and steps are made of, in letters and digits that only look like theirs."""
    words = draw(st.lists(st.sampled_from(WORDS) | st.text(max_size=4) | st.integers(1, 10**20).map(str), max_size=8))
    text = draw(st.sampled_from([" ", " ", "", "-", ", "])).join(words)
    changes: list[Callable[[str], str]] = [str, str.upper, str.title, str.swapcase]
    text = draw(st.sampled_from(changes))(text)
    pairs = draw(st.sampled_from(LOOKALIKES))
    return text.translate({ord(a): b for a, b in zip(pairs[::2], pairs[1::2], strict=True)})


@pytest.mark.parametrize(
    ("response", "context"),
    [
        ("5 MİN", "5 minutes"),
        ("10 ſeconds", "10 seconds"),
        ("20 dollarſ", "$20"),
        ("monday to tueſday", "Monday, Tuesday"),
        ("STEP FİVE", "step 5"),
        ("3 ſeptember 2020", "2020-09-03"),
        ("12 \u212am", "12 kilometres"),
        ("１２ days", "12 days"),
        ("٣ days", "3 days"),
        ("İstanbul", "in Istanbul"),
        ("9" * 5000 + "th", "the " + "9" * 5000 + "th"),
        ("step " + "9" * 5000, "step " + "9" * 5000),
        ("9" * 5000 + " days", "9" * 5000 + " days"),
    ],
)
def test_letters_and_digits_that_look_alike_are_alike(response: str, context: str) -> None:
    assert missing(f"it is {response}", context) == []


def test_long_numbers_are_known_by_every_digit() -> None:
    assert missing("account 12345678901234567890", "account 12345678901234567891") == ["12345678901234567890"]
    assert missing("12,345,678,901,234,567,890 people", "12345678901234567890 people") == []


@given(odd_texts())
def test_odd_texts_can_be_read_and_know_themselves(text: str) -> None:
    for entity in find_entities(text):
        assert entity.text.strip()
    assert missing(text, text) == []


@given(st.text(max_size=80))
def test_every_text_can_be_read_and_knows_its_own_names_and_numbers(text: str) -> None:
    assert missing(text, text) == []
