"""Fixtures shared with other tests."""

from tests.jobs.second_pass.escalate.conftest import judge, scored, scored_once  # noqa: F401
from tests.jobs.second_pass.explain.conftest import flagged, flagged_once, model  # noqa: F401
