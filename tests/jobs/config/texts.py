"""Job files as text, for tests of their faults."""

from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.config.job_text import parse_yaml
from tests.raises import refuses


def job_of(text: str) -> Job:
    return make_job(parse_yaml(text))


def assert_refused(text: str, fault: str) -> None:
    """Assert that a job file is refused with a fault of this code, or of this key."""
    with refuses(fault):
        job_of(text)
