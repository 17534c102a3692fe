"""What the bundled verifiers are trained on holds nothing that they are measured on."""

from pathlib import Path

import polars as pl
import pytest

from jobs.handbook.build import LOGS
from jobs.tune.mix import build, held_out

SETS = ("squad_v2", "halueval_qa", "fever", "begin_dev", "halueval_summarization")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in SETS:
        rows = []
        for n in range(12):
            made = f"The {name} number {n} was made in {1900 + n}. Ms. Oakes has it at home. It is not for sale."
            context = [f"{made} It cost {n + 3} dollars."]
            rows += [
                {"question": "When?", "context": context, "response": f"In {1900 + n}.", "label": "correct"},
                {"question": "When?", "context": context, "response": f"In {1800 + n}.", "label": "wrong"},
            ]
        pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("name", ["facts", "sources"])
def test_what_is_measured_is_not_trained_on(data: Path, name: str) -> None:
    mix = build(data, name)
    test_part = pl.read_parquet(LOGS / "**/*.parquet").filter(pl.col("split") == "test")
    trained = set(mix["context"].explode().to_list())
    assert trained.isdisjoint(test_part["context"].explode().to_list())
    fever = pl.read_parquet(data / "fever.parquet")["context"].unique().to_list()
    kept = {context[0][:40] for context in fever if held_out(context)}
    assert kept, "some contexts of FEVER must be held out for the test to mean anything"
    assert kept.isdisjoint(passage[:40] for passage in trained)


def test_a_mix_is_the_same_every_time_and_balanced(data: Path) -> None:
    one, again = build(data, "facts"), build(data, "facts")
    assert one.equals(again)
    share = (one["label"] == "correct").mean()
    assert 0.4 < share < 0.6  # type: ignore[operator]


def test_the_two_mixes_of_a_round_share_only_fever_and_the_handbook(data: Path) -> None:
    both = set(pl.read_parquet(LOGS / "**/*.parquet")["context"].explode().to_list())
    for number in (1, 2):
        facts, sources = (set(build(data, name, number)["context"].explode().to_list()) - both for name in ("facts", "sources"))
        assert facts and sources
        assert all("The fever number" in passage for passage in facts & sources)
