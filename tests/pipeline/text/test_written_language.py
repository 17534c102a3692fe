"""The language of a row, by its texts: what decides, and what is no evidence."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragassay.pipeline.text.written_language import MAX_RAW_CHARS, language_of_row, language_of_text
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
def test_an_answer_over_english_passages_has_its_own_language(code: str, kind: str) -> None:
    question, answer = BY_LANGUAGE[code][KINDS.index(kind)]
    expected = {"no", "da"} if (code, kind) == ("no", KINDS[0]) else {code}  # `Tre måneder.` is both
    assert language_of_row(question, PASSAGES, answer, ENGLISH) in expected


@pytest.mark.parametrize("code", [code for code in BY_LANGUAGE if code != "en"])
def test_sentences_need_no_question_in_their_language(code: str) -> None:
    for _, answer in BY_LANGUAGE[code][1:]:
        for question in (None, "", QUESTION):
            assert language_of_row(question, PASSAGES, answer, ENGLISH) == code


def test_an_english_answer_over_german_passages_is_english() -> None:
    for question, answer in BY_LANGUAGE["en"]:
        assert language_of_row(question, GERMAN_PASSAGES, answer, ENGLISH) == "en"
    assert language_of_row(GERMAN[2][0], GERMAN_PASSAGES, ANSWER, ENGLISH) == "en"


def test_a_german_answer_that_cites_english_words_is_german() -> None:
    answer = f'{GERMAN[2][1]} Im Vertrag steht dazu: "Members may cancel their contract in writing." Das gilt auch im Januar.'
    assert language_of_row(QUESTION, PASSAGES, answer, ENGLISH) == "de"


@pytest.mark.parametrize("quoted", ['"{}"', "„{}“", "«{}»", "{}", "> {}\n"])
def test_an_english_answer_that_quotes_a_german_sentence_is_english(quoted: str) -> None:
    quotation = quoted.format("Die Kündigungsfrist beträgt drei Monate zum Quartalsende.")
    answer = f"The contract says: {quotation} That means three months to the end of a quarter. You have to write a letter."
    assert language_of_row(None, GERMAN_PASSAGES, answer, ENGLISH) == "en"
    assert language_of_row("Wie lange ist die Frist?", GERMAN_PASSAGES, answer, ENGLISH) == "en"


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
def test_what_says_little_is_not_taken_for_another_language(answer: str) -> None:
    assert language_of_row(QUESTION, PASSAGES, answer, ENGLISH) in (None, "en")


@pytest.mark.parametrize("text", ["", "12 345", "Anna Müller", "`der Vertrag`", "😀", "{}", "\ud800"])
def test_without_words_nothing_is_known(text: str) -> None:
    assert language_of_row(None, None, text, ENGLISH) is None
    assert language_of_row(text, [None, "", text], text) is None


def test_a_row_that_says_nothing_has_the_language_of_its_question_and_then_of_its_context() -> None:
    assert language_of_row(GERMAN[0][0], PASSAGES, "14", ENGLISH) == "de"
    assert language_of_row(QUESTION, GERMAN_PASSAGES, "14", ENGLISH) == "en"
    assert language_of_row("14?", GERMAN_PASSAGES, "14", ENGLISH) == "de"
    assert language_of_row(None, None, None, ENGLISH) is None


def test_several_languages_can_be_measured() -> None:
    both = frozenset({"en", "de"})
    found = {code: language_of_row(None, PASSAGES, answers[2][1], both) for code, answers in BY_LANGUAGE.items()}
    assert found == {code: code for code in BY_LANGUAGE}
    assert language_of_text("The Vertrag beginnt im Januar and ends in March.", both) in both


def test_without_measured_languages_the_clear_language_is_told() -> None:
    for code, answers in BY_LANGUAGE.items():
        assert language_of_row(answers[2][0], PASSAGES, answers[2][1]) == code
    assert language_of_text("turbo-electric transmission") is None


def test_capital_letters_change_nothing() -> None:
    for code in ("de", "fr", "ru", "el"):
        assert language_of_text(BY_LANGUAGE[code][2][1].upper(), ENGLISH) == code


@given(st.text(max_size=300), st.text(max_size=300), st.lists(st.text(max_size=100) | st.none(), max_size=3))
@example("\ud800", "`" * 300, ["<" * 300])
@example('"' * 300, "“" * 300, ["```" + "~~~" * 90])
def test_any_text_has_a_language_or_none_and_always_the_same(question: str, response: str, context: list[str | None]) -> None:
    found = language_of_row(question, context, response, ENGLISH)
    assert found is None or (len(found) == 2 and found.islower())
    assert language_of_row(question, context, response, ENGLISH) == found


def test_threads_agree() -> None:
    texts = [answer for answers in BY_LANGUAGE.values() for _, answer in answers] * 5
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(language_of_text, texts)) == [language_of_text(text) for text in texts]


def test_a_long_text_counts_by_its_beginning() -> None:
    german = (GERMAN[2][1] + " ") * 100
    assert len(german) > MAX_RAW_CHARS
    assert language_of_text(german + ANSWER * 1000, ENGLISH) == "de"
