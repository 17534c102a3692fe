"""Normal forms of entities, compared by hand."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.detectors import find_entities as find_entities_module
from ragassay.pipeline.detectors.find_entities import DAYS, MONTHS, EntityKind, collect_known_keys, find_entities


def find_missing(response: str, context: str) -> list[str]:
    known = collect_known_keys([context])
    return [entity.text for entity in find_entities(response) if not entity.is_known(known)]


def find_kinds(text: str) -> dict[str, str]:
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
        ("within three days", "within 72 hours"),
        ("from 8 to 18", "8 a.m. to 6 p.m."),
        ("from 8 a.m. to 6 p.m.", "8–18"),
        ("between midnight and six in the morning", "0:00 to 6:00"),
        ("until 8 at night", "until 20:00"),
        ("€9.99 a month", "€9.99 per month"),
        ("€9.99 per month", "Monthly fee: €9.99"),
        ("€0.22 per minute", "0.22 €/min"),
        ("See Oduya's office", "Ms. Oduya will call"),
    ],
)
def test_an_entity_in_another_spelling_is_known(response: str, context: str) -> None:
    assert find_entities(response) and find_missing(response, context) == []


@pytest.mark.parametrize(
    ("response", "context", "expected"),
    [
        ("It opens at 9 AM.", "It opens at 9 PM.", ["9 AM"]),
        ("three days", "three years", ["three days"]),
        ("47%", "47 dollars", ["47%"]),
        ("$20", "€20", ["$20"]),
        ("on 3 March 2024", "on 3 March", ["3 March 2024"]),
        ("on 3 March", "on 4 March 2024", ["3 March"]),
        ("on Saturday", "Monday to Friday", ["Saturday"]),
        ("the second step", "step 3", ["second"]),
        ("€9.99 per year", "€9.99 per month", ["€9.99 per year"]),
        ("5 mg per week", "5 mg per day", ["5 mg per week"]),
        ("each minute costs €0.32", "each minute costs €0.22", ["€0.32"]),
        ("from 8 to 19", "8 a.m. to 6 p.m.", ["19"]),
        ("up to 6 cubic metres", "4 cubic metres, between 6 pm and 6 am", ["6"]),
        ("Bring 8 copies.", "It opens at 8 a.m.", ["8"]),
        ("until 7 p.m.", "8–18", ["7 p.m."]),
        ("They met Ms. Oduya at Quillport Transit.", "Quillport has no bus.", ["Oduya", "Quillport Transit"]),
    ],
)
def test_an_entity_with_another_value_is_missing(response: str, context: str, expected: list[str]) -> None:
    assert find_missing(response, context) == expected


def test_may_after_a_number_is_a_verb() -> None:
    assert find_missing("Children who are not yet 18 may use it.", "Those under 18 can use it.") == []
    assert find_missing("It ends on 18 May.", "It ends on 17 May.") == ["18 May"]


def test_entities_have_kinds() -> None:
    text = "On 3 March 2024 the first 12 of 40 guests paid $5 at Quillport Transit, step 2 of the A320 plan, at 9:30 am in Q3."
    assert find_kinds(text) == {
        "3 March 2024": "date", "first": "sequence", "12": "number", "40": "number", "$5": "number",
        "Quillport Transit": "name", "step 2": "sequence", "A320": "name", "9:30 am": "date", "Q3": "date",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "One of them answered no.",
        "1. Call the desk.",
        "2) Wait.",
        "First, call the desk.",
        "At first it works.",
        "As passage 2 states, and passages 1 and 3.",
        "It is free.",
        "$20 an hour"[4:],
    ],
)
def test_texts_without_entities(text: str) -> None:
    assert find_entities(text, stop_words=frozenset({"one", "it", "as", "at", "first"})) == []


def test_the_first_word_of_a_sentence_is_a_name_only_if_it_looks_like_a_name() -> None:
    assert find_kinds("Guests pay. NASA pays. The Quillport Transit pays.") == {"NASA": "name", "Quillport Transit": "name"}


def test_names_of_a_recognizer_replace_names_by_capital_letters() -> None:
    entities = find_entities("Guests of Ada pay 5 dollars", names=["Ada Lovelace"])
    assert {(entity.kind, entity.text) for entity in entities} == {
        (EntityKind.NUMBER, "5 dollars"),
        (EntityKind.NAME, "Ada Lovelace"),
    }


@given(st.integers(0, 10**7), st.sampled_from(["", " days", "%", " dollars", " km"]))
def test_a_number_is_known_in_every_spelling(number: int, unit: str) -> None:
    for spelling in (f"{number}{unit}", f"{number:,}{unit}"):
        assert find_missing(f"about {spelling} then", f"so {number}{unit}.") == []


WORDS = [
    *MONTHS,
    *DAYS,
    *find_entities_module._UNITS,
    *find_entities_module._VALUES,
    *find_entities_module._SCALES,
    *find_entities_module._ORDINALS,
    *find_entities_module._CURRENCIES,
    *find_entities_module._TRIGGERS,
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
def unusual_texts(draw: st.DrawFn) -> str:
    """Words of numbers, dates and steps, in letters and digits that look similar."""
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
def test_similar_letters_and_digits_are_equal(response: str, context: str) -> None:
    assert find_missing(f"it is {response}", context) == []


def test_long_numbers_are_compared_digit_by_digit() -> None:
    assert find_missing("account 12345678901234567890", "account 12345678901234567891") == ["12345678901234567890"]
    assert find_missing("12,345,678,901,234,567,890 people", "12345678901234567890 people") == []


@given(unusual_texts())
def test_unusual_texts_contain_their_own_entities(text: str) -> None:
    for entity in find_entities(text):
        assert entity.text.strip()
    assert find_missing(text, text) == []


@given(st.text(max_size=80))
def test_every_text_contains_its_own_entities(text: str) -> None:
    assert find_missing(text, text) == []


def test_an_entity_does_not_contain_the_full_stop_of_its_sentence() -> None:
    assert find_missing("It takes 34 hours. It opens at 9 a.m.", "It takes 33 hours from 8 a.m.") == ["34 hours", "9 a.m."]
