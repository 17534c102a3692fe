"""Every case of the golden corpus comes out as it is committed. On a difference: `python -m tests.golden -k CASE` prints it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.cases import CASES
from tests.golden.compare import EXPECTED, check
from tests.golden.scene import Case
from tests.golden.servers import Servers, serve


@pytest.fixture(scope="module")
def servers(one_ray: None) -> Iterator[Servers]:
    with serve() as started:
        yield started


def test_names_are_unique_and_expected_files_are_of_cases() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {path.name for path in EXPECTED.iterdir()} == set(names)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_comes_out_as_expected(case: Case, servers: Servers, tmp_path: Path) -> None:
    outcome = check(case, tmp_path, servers)
    assert not outcome.fault, outcome.fault
    assert not outcome.diff, f"`python -m tests.golden -k {case.name} --update` writes it anew\n{outcome.diff}"
