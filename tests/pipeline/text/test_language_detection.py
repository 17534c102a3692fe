"""The language of a row from its texts: what decides, and what is not evidence."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragassay.pipeline.text.language_detection import MAX_RAW_CHARS, detect_language, detect_row_language
from tests.corpus.answers_by_language import BY_LANGUAGE, KINDS, PASSAGES

ENGLISH = frozenset({"en"})
GERMAN = BY_LANGUAGE["de"]
QUESTION, ANSWER = BY_LANGUAGE["en"][2]
GERMAN_PASSAGES = (
    "Mitglieder können ihren Vertrag schriftlich mit einer Frist von drei Monaten zum Quartalsende kündigen.",
    "Die Bibliothek öffnet werktags um 9 Uhr und samstags um 10 Uhr. Bücher dürfen vier Wochen behalten werden.",
)


@pytest.mark.parametrize("code", BY_LANGUAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_over_english_passages_keeps_its_language(code: str, kind: str) -> None:
    question, answer = BY_LANGUAGE[code][KINDS.index(kind)]
    expected = {"no", "da"} if (code, kind) == ("no", KINDS[0]) else {code}  # `Tre måneder.` is Norwegian and Danish
    assert detect_row_language(question, PASSAGES, answer, ENGLISH) in expected


@pytest.mark.parametrize("code", [code for code in BY_LANGUAGE if code != "en"])
def test_sentences_are_detected_without_a_question_in_their_language(code: str) -> None:
    for _, answer in BY_LANGUAGE[code][1:]:
        for question in (None, "", QUESTION):
            assert detect_row_language(question, PASSAGES, answer, ENGLISH) == code


def test_an_english_answer_over_german_passages_is_english() -> None:
    for question, answer in BY_LANGUAGE["en"]:
        assert detect_row_language(question, GERMAN_PASSAGES, answer, ENGLISH) == "en"
    assert detect_row_language(GERMAN[2][0], GERMAN_PASSAGES, ANSWER, ENGLISH) == "en"


def test_a_german_answer_that_cites_english_words_is_german() -> None:
    answer = f'{GERMAN[2][1]} Im Vertrag steht dazu: "Members may cancel their contract in writing." Das gilt auch im Januar.'
    assert detect_row_language(QUESTION, PASSAGES, answer, ENGLISH) == "de"


@pytest.mark.parametrize("quoted", ['"{}"', "„{}“", "«{}»", "{}", "> {}\n"])
def test_an_english_answer_that_quotes_a_german_sentence_is_english(quoted: str) -> None:
    quotation = quoted.format("Die Kündigungsfrist beträgt drei Monate zum Quartalsende.")
    answer = f"The contract states: {quotation} That means three months to the end of a quarter. You have to write a letter."
    assert detect_row_language(None, GERMAN_PASSAGES, answer, ENGLISH) == "en"
    assert detect_row_language("Wie lange ist die Frist?", GERMAN_PASSAGES, answer, ENGLISH) == "en"


@pytest.mark.parametrize(
    "answer",
    [
        "Yes.", "No", "OK", "14 days", "3", "2026-11-02", "€ 1.234,50", "", " \n", "...", "🙂🙂", "\u200b", "N/A",
        "I don't know.",
        "Anna Müller", "Wojciech Bogusławski", "Count Ludwig von Nassau-Saarbrücken", "Kënga Magjike", "Plasmodium falciparum",
        "Escherichia coli, Staphylococcus aureus, Pseudomonas aeruginosa", "amoxicillin 500 mg p.o. t.i.d.",
        "Metformin, lisinopril, atorvastatin and hydrochlorothiazide.", "José García, Zoë Lefèvre, Jürgen Groß, Łukasz Nowak",
        "Via Garibaldi 14, 20121 Milano", "12 rue de la Paix, 75002 Paris", "Königstraße 5, 70173 Stuttgart",
        "SELECT name, salary FROM employees WHERE department = 'Vertrieb' ORDER BY salary DESC;",
        '{"name": "Jürgen", "ort": "München", "betrag": 12.5, "gültig_bis": null}', "for item in items:\n    print(item)",
        "```python\ndef rechne(betrag, zinssatz):\n    return betrag * zinssatz  # der Betrag mit dem Zinssatz\n```",
        "Run `kubectl get pods -n produktion` first.", "https://beispiel.de/der/weg/zu/den/seiten/der/stadt",
        "anna@beispiel.de",
        "C:\\Benutzer\\Dateien\\meine_datei.txt", "THE LIBRARY OPENS AT TEN ON SATURDAYS", "u can keep teh boks for 4 weks lol",
        "The Library Opens At Ten On Saturdays", "Terms: force majeure, bona fide, habeas corpus, pro rata, per diem.",
        "Order number 北京-12 at 東京 costs 5 元.", "x = \\frac{a}{b}", "| Jahr | Wert |\n| --- | --- |\n| 2020 | 5 |",
        "The Japanese name of the city is 東京, and it is read Tōkyō.", "The Greek letter α stands for the angle.",
    ],
)  # fmt: skip
def test_short_or_special_text_is_not_detected_as_another_language(answer: str) -> None:
    assert detect_row_language(QUESTION, PASSAGES, answer, ENGLISH) in (None, "en")


@pytest.mark.parametrize("text", ["", "12 345", "Anna Müller", "`der Vertrag`", "😀", "{}", "\ud800"])
def test_text_without_words_has_no_language(text: str) -> None:
    assert detect_row_language(None, None, text, ENGLISH) is None
    assert detect_row_language(text, [None, "", text], text) is None


def test_a_short_response_has_the_language_of_its_question_or_else_of_its_context() -> None:
    assert detect_row_language(GERMAN[0][0], PASSAGES, "14", ENGLISH) == "de"
    assert detect_row_language(QUESTION, GERMAN_PASSAGES, "14", ENGLISH) == "en"
    assert detect_row_language("14?", GERMAN_PASSAGES, "14", ENGLISH) == "de"
    assert detect_row_language(None, None, None, ENGLISH) is None


def test_several_measured_languages_are_detected() -> None:
    measured = frozenset({"en", "de"})
    languages = {code: detect_row_language(None, PASSAGES, answers[2][1], measured) for code, answers in BY_LANGUAGE.items()}
    assert languages == {code: code for code in BY_LANGUAGE}
    assert detect_language("The Vertrag beginnt im Januar and ends in March.", measured) in measured


def test_without_measured_languages_the_most_likely_language_is_returned() -> None:
    for code, answers in BY_LANGUAGE.items():
        assert detect_row_language(answers[2][0], PASSAGES, answers[2][1]) == code
    assert detect_language("turbo-electric transmission") is None


def test_capital_letters_do_not_change_the_language() -> None:
    for code in ("de", "fr", "ru", "el"):
        assert detect_language(BY_LANGUAGE[code][2][1].upper(), ENGLISH) == code


@given(st.text(max_size=300), st.text(max_size=300), st.lists(st.text(max_size=100) | st.none(), max_size=3))
@example("\ud800", "`" * 300, ["<" * 300])
@example('"' * 300, "“" * 300, ["```" + "~~~" * 90])
def test_detection_is_deterministic_for_any_text(question: str, response: str, context: list[str | None]) -> None:
    language = detect_row_language(question, context, response, ENGLISH)
    assert language is None or (len(language) == 2 and language.islower())
    assert detect_row_language(question, context, response, ENGLISH) == language


def test_threads_share_the_model() -> None:
    texts = [answer for answers in BY_LANGUAGE.values() for _, answer in answers] * 5
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(detect_language, texts)) == [detect_language(text) for text in texts]


def test_only_the_beginning_of_a_long_text_counts() -> None:
    german = (GERMAN[2][1] + " ") * 100
    assert len(german) > MAX_RAW_CHARS
    assert detect_language(german + ANSWER * 1000, ENGLISH) == "de"
