"""Languages from a column: names and codes, splitting and detectors per row, exact offsets in every language."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ragassay.jobs.config.splitting import SplittingConfig
from ragassay.jobs.scoring.frequencies import count_table_frequencies
from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.novelty import Novelty
from ragassay.pipeline.stages.detect import DetectStage
from ragassay.pipeline.stages.split import SplitStage
from ragassay.pipeline.text.language_codes import LANGUAGE_NAMES, parse_language
from ragassay.pipeline.text.split import check_language
from ragassay.schemas.columns import logs_schema

TEXTS = {
    "en": "Dr. Smith opened at 9 a.m. on Monday. Staff wear badges! Do they? Yes.",
    "de": "Der Laden öffnet um 9 Uhr, z. B. am 3. Mai. Die Mitarbeiter tragen Ausweise. Wirklich? Ja.",
    "fr": "Le magasin ouvre à 9 h. M. Dupont porte un badge ! Vraiment ? Oui.",
    "es": "¿A qué hora abre? La tienda abre a las 9. El Sr. Gómez lleva una tarjeta.",
    "ja": "店は九時に開きます。店員は名札を付けます！本当ですか？はい。",
    "zh": "商店九点开门。店员戴着胸牌！真的吗？是的。",
    "th": "ร้านเปิดเวลา 9 โมง พนักงานสวมป้ายชื่อ จริงหรือ? ใช่.",
    "ko": "가게는 9시에 문을 엽니다. 직원은 명찰을 답니다! 정말요? 네.",
    "vi": "Cửa hàng mở lúc 9 giờ. Nhân viên đeo thẻ tên! Thật không? Vâng.",
    "ar": "يفتح المتجر في الساعة 9. يرتدي الموظفون شارات! حقا؟ نعم.",
    "xx": "Lojë hapet në 9. 🏪 Stafi mban distinktivë!\n- një\n- dy",
}
COLUMN_VALUES = {
    "en": "en-GB", "de": "German", "fr": "fra", "es": "Español", "ja": "jpn", "zh": "zh_Hant", "th": "Thai", "ko": "ko-KR",
    "vi": "Vietnamese", "ar": "ar", "xx": "Klingon",
}  # fmt: skip


def make_rows(languages: list[str | None], texts: list[str]) -> pa.Table:
    schema = logs_schema(pa.schema([("lang", pa.string())]))
    rows = [
        {"row_key": i, "row_id": f"r{i}", "question": "?", "context": [TEXTS["de"], TEXTS["en"], text], "response": text,
         "status": "ok", "lang": language}
        for i, (language, text) in enumerate(zip(languages, texts, strict=True))
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema)


def split_rows(table: pa.Table, language: str = "en", column: str | None = "lang") -> list[dict[str, Any]]:
    """Return the split rows without the detected language."""
    rows: list[dict[str, Any]] = (
        SplitStage(("sentencizer", language), False, column)(table).drop_columns(["language"]).to_pylist()
    )
    return rows


def test_codes_and_names_become_codes_of_spacy() -> None:
    codes = {"de": "de", "DE": "de", "de-DE": "de", "de_AT.UTF-8": "de", " German ": "de", "deu": "de", "Deutsch": "de",
            "zh-Hans": "zh", "pt-BR": "pt", "no": "nb", "Chinese (Simplified)": "zh", "हिन्दी": "hi", "ไทย": "th"}  # fmt: skip
    assert {value: parse_language(value) for value in codes} == codes
    assert {parse_language(value) for value in (None, "", " ", "tlh", "unknown", "und", "-", "xx")} == {"xx"}
    words = [word for code, names in LANGUAGE_NAMES.items() for word in (code, *names.split())]
    assert len(set(words)) == len(words)
    assert all(find_spec(f"spacy.lang.{code}") for code in LANGUAGE_NAMES)
    for code in ("de", "ja", "zh", "th"):
        check_language(code)


@given(st.lists(st.tuples(st.sampled_from(sorted(TEXTS)), st.text(max_size=30)), min_size=1, max_size=8))
def test_a_mixed_batch_splits_each_row_by_its_language_with_exact_offsets(rows: list[tuple[str, str]]) -> None:
    texts = [TEXTS[language] + " " + more for language, more in rows]
    table = make_rows([COLUMN_VALUES[language] for language, _ in rows], texts)
    mixed = split_rows(table)
    for i, (row, (language, _), text) in enumerate(zip(mixed, rows, texts, strict=True)):
        assert [text[s["start"] : s["end"]] for s in row["sentences"]] == [s["text"] for s in row["sentences"]]
        alone = split_rows(table.slice(i, 1), language, None)
        assert alone == [row]


def test_sentence_rules_depend_on_the_language() -> None:
    rows = split_rows(make_rows(list(COLUMN_VALUES.values()), [TEXTS[language] for language in COLUMN_VALUES]))
    sentences = {language: [s["text"] for s in row["sentences"]] for language, row in zip(COLUMN_VALUES, rows, strict=True)}
    assert sentences["en"][0] == "Dr. Smith opened at 9 a.m. on Monday." and len(sentences["en"]) == 4
    assert [len(sentences[language]) for language in ("ja", "zh", "ko", "vi")] == [4, 4, 4, 4]
    assert sentences["xx"][-2:] == ["- një", "- dy"] and len(sentences["es"]) == 3


def test_detectors_use_the_language_of_each_row() -> None:
    languages = ["German", "en", None, "de", "fr"]
    table = make_rows(languages, [TEXTS["de"], TEXTS["en"], TEXTS["fr"], TEXTS["de"], TEXTS["fr"]])
    detectors = (Novelty(name="novelty"), Attribution(name="attribution"))
    frequencies = count_table_frequencies([table], SplittingConfig(language_column="lang"))
    mixed = DetectStage(detectors, "en", lambda: frequencies, 1, "lang")(
        SplitStage(("sentencizer", "en"), False, "lang")(table)
    )
    assert mixed["row_key"].to_pylist() == list(range(5))
    for i, language in enumerate(languages):
        code = parse_language(language)
        alone = SplitStage(("sentencizer", code), False)(table.slice(i, 1))
        [row], [same] = DetectStage(detectors, code, lambda: frequencies, 1)(alone).to_pylist(), mixed.slice(i, 1).to_pylist()
        assert row == same | {"language": row["language"]}
    german, english = (count_table_frequencies([table.slice(0, 1)], SplittingConfig(language=code)) for code in ("de", "en"))
    assert not np.array_equal(german.counts, english.counts)


def test_an_installed_pipeline_cannot_have_a_language_column() -> None:
    with pytest.raises(ValidationError) as error:
        SplittingConfig(pipeline="ja_core_news_sm", language_column="lang")
    assert [fault["type"] for fault in error.value.errors()] == ["config.pipeline-language"]
