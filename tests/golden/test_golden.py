"""Every case of the golden corpus comes out as it is committed; most without Ray, which changes nothing but the time.

On a difference: `python -m tests.golden -k CASE` prints it, with Ray; with `--without-ray`, as here.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.golden.cases import CASES
from tests.golden.compare import EXPECTED, check
from tests.golden.scene import Case
from tests.golden.servers import Servers, serve
from tests.without_ray import without_ray


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with serve() as started:
        yield started


def test_names_are_unique_and_expected_files_are_of_cases() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {path.name for path in EXPECTED.iterdir()} == set(names)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_comes_out_as_expected(case: Case, servers: Servers, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if case.needs_ray:
        request.getfixturevalue("one_ray")
    with nullcontext() if case.needs_ray else without_ray():
        outcome = check(case, tmp_path, servers)
    assert not outcome.fault, outcome.fault
    assert not outcome.diff, f"`python -m tests.golden -k {case.name} --update` writes it anew\n{outcome.diff}"
