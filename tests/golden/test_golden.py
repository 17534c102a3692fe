"""Every case of the golden corpus has its committed output. Most cases run without Ray, which only saves time.

`python -m tests.golden -k CASE` prints the difference with Ray; `--without-ray` does the same without.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.golden.cases import CASES
from tests.golden.compare import EXPECTED, check_case
from tests.golden.scene import Case
from tests.golden.servers import Servers, serve
from tests.without_ray import without_ray


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with serve() as running:
        yield running


def test_names_are_unique_and_each_expected_folder_has_a_case() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {path.name for path in EXPECTED.iterdir()} == set(names)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_the_expected_output(case: Case, servers: Servers, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if case.needs_ray:
        request.getfixturevalue("shared_ray_session")
    with nullcontext() if case.needs_ray else without_ray():
        outcome = check_case(case, tmp_path, servers)
    assert not outcome.fault, outcome.fault
    assert not outcome.diff, f"`python -m tests.golden -k {case.name} --update` rewrites the expected files\n{outcome.diff}"
