"""Read the language of a row from a column of the logs: `de`, `de-DE`, `German` and `deu` are the same."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from ragassay.pipeline.text.split import MULTI_LANGUAGE

LANGUAGE_NAMES: Mapping[str, str] = {
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
"""ISO 639-1 code of each language that spaCy has rules for -> other names and codes that logs may use for it."""

_SEPARATOR = re.compile(r"[\s_.,;/()-]+")  # between a language and its region, script or encoding


@cache
def _codes_by_name() -> dict[str, str]:
    return {word: code for code, words in LANGUAGE_NAMES.items() for word in (code, *words.split())}


def parse_language(value: str | None) -> str:
    """Return the ISO 639-1 code of a language that spaCy has rules for; `xx` for any other language, and for null.

    Args:
        value: A code with or without region and script (`pt-BR`, `zh_Hant`, `en_US.UTF-8`), or a name.
    """
    word = next(filter(None, _SEPARATOR.split((value or "").casefold())), "")
    return _codes_by_name().get(word, MULTI_LANGUAGE)


def read_row_languages(table: pa.Table, language: str, column: str | None) -> list[str]:
    """Return the language code of each row.

    Args:
        table: Rows.
        language: Language of all rows if `column` is None.
        column: Column with the language of each row.
    """
    if column is None:
        return [language] * table.num_rows
    if column not in table.column_names:
        return [MULTI_LANGUAGE] * table.num_rows
    return [parse_language(None if value is None else str(value)) for value in table[column].to_pylist()]


def group_by_language(languages: Sequence[Any]) -> dict[Any, list[int]]:
    """Return language -> numbers of its rows."""
    rows: dict[Any, list[int]] = {}
    for row, language in enumerate(languages):
        rows.setdefault(language, []).append(row)
    return rows
