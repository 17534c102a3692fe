"""The language of a row, by what its logs say: `de`, `de-DE`, `German`, `deu` are one."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from ragassay.pipeline.text.split import MANY_LANGUAGES

NAMES: Mapping[str, str] = {
    "af": "afrikaans afr", "am": "amharic amh", "ar": "arabic ara العربية", "az": "azerbaijani aze",
    "bg": "bulgarian bul български", "bn": "bengali bangla ben বাংলা", "bo": "tibetan bod tib",
    "ca": "catalan valencian cat català", "cs": "czech ces cze čeština", "da": "danish dan dansk",
    "de": "german deu ger deutsch", "el": "greek ell gre ελληνικά", "en": "english eng",
    "es": "spanish castilian spa español espanol", "et": "estonian est eesti", "eu": "basque eus baq euskara",
    "fa": "persian farsi fas per فارسی", "fi": "finnish fin suomi", "fr": "french fra fre français francais",
    "ga": "irish gle gaeilge", "gd": "gla", "gu": "gujarati guj", "he": "hebrew heb iw עברית", "hi": "hindi hin हिन्दी",
    "hr": "croatian hrv hrvatski", "ht": "haitian creole hat", "hu": "hungarian hun magyar", "hy": "armenian hye arm",
    "id": "indonesian ind", "is": "icelandic isl ice íslenska", "it": "italian ita italiano", "ja": "japanese jpn 日本語",
    "kn": "kannada kan", "ko": "korean kor 한국어", "ky": "kyrgyz kirghiz kir", "la": "latin lat", "lb": "luxembourgish ltz",
    "lg": "luganda ganda lug", "lt": "lithuanian lit lietuvių", "lv": "latvian lav latviešu", "mk": "macedonian mkd mac",
    "ml": "malayalam mal", "mr": "marathi mar", "ms": "malay msa may", "nb": "norwegian bokmål bokmal nob nor no norsk",
    "ne": "nepali nep", "nl": "dutch flemish nld dut nederlands", "nn": "nynorsk nno", "pl": "polish pol polski",
    "pt": "portuguese por português portugues", "ro": "romanian moldovan ron rum română", "ru": "russian rus русский",
    "sa": "sanskrit san", "si": "sinhala sinhalese sin", "sk": "slovak slk slo slovenčina", "sl": "slovenian slovene slv",
    "sq": "albanian sqi alb shqip", "sr": "serbian srp српски srpski", "sv": "swedish swe svenska", "ta": "tamil tam",
    "te": "telugu tel", "th": "thai tha ไทย", "ti": "tigrinya tir", "tl": "tagalog filipino fil tgl",
    "tn": "tswana setswana tsn", "tr": "turkish tur türkçe turkce", "tt": "tatar tat", "uk": "ukrainian ukr українська",
    "ur": "urdu urd اردو", "vi": "vietnamese vie", "yo": "yoruba yor", "zh": "chinese mandarin zho chi cmn 中文",
}  # fmt: skip
"""Languages for which spaCy has rules, by ISO 639-1, with the names and codes that logs may have in their place."""

_BETWEEN = re.compile(r"[\s_.,;/()-]+")  # a language and its region, script or encoding


@cache
def _codes() -> dict[str, str]:
    return {word: code for code, words in NAMES.items() for word in (code, *words.split())}


def language_of(value: str | None) -> str:
    """ISO 639-1 code of a language that spaCy has rules for; `xx` for all others, and for none.

    Args:
        value: A code with or without region and script (`pt-BR`, `zh_Hant`, `en_US.UTF-8`), or a name.
    """
    word = next(filter(None, _BETWEEN.split((value or "").casefold())), "")
    return _codes().get(word, MANY_LANGUAGES)


def row_languages(table: pa.Table, language: str, column: str | None) -> list[str]:
    """Language of each row.

    Args:
        table: Rows.
        language: That of all of them, where no column says it.
        column: The column that does; None where there is none.
    """
    if column is None:
        return [language] * table.num_rows
    if column not in table.column_names:
        return [MANY_LANGUAGES] * table.num_rows
    return [language_of(None if value is None else str(value)) for value in table[column].to_pylist()]


def by_language(languages: Sequence[Any]) -> dict[Any, list[int]]:
    """Places of the rows of each language."""
    found: dict[Any, list[int]] = {}
    for place, language in enumerate(languages):
        found.setdefault(language, []).append(place)
    return found
