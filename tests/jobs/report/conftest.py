from tests.jobs.evaluation.conftest import scored, scored_once  # noqa: F401
