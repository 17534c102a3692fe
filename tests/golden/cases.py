"""The list of cases."""

from tests.golden import (
    cases_ahead,
    cases_crash,
    cases_decide,
    cases_errors,
    cases_inputs,
    cases_runs,
    cases_second,
    cases_tables,
    cases_traces,
)
from tests.golden.scene import Case

CASES: tuple[Case, ...] = (
    *cases_inputs.CASES,
    *cases_runs.CASES,
    *cases_tables.CASES,
    *cases_traces.CASES,
    *cases_decide.CASES,
    *cases_second.CASES,
    *cases_ahead.CASES,
    *cases_errors.CASES,
    *cases_crash.CASES,
)
