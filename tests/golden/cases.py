"""All golden cases."""

from tests.golden import (
    cases_crash,
    cases_errors,
    cases_inputs,
    cases_planning,
    cases_runs,
    cases_second_pass,
    cases_tables,
    cases_traces,
    cases_verdicts,
)
from tests.golden.scene import Case

CASES: tuple[Case, ...] = (
    *cases_inputs.CASES,
    *cases_runs.CASES,
    *cases_tables.CASES,
    *cases_traces.CASES,
    *cases_verdicts.CASES,
    *cases_second_pass.CASES,
    *cases_planning.CASES,
    *cases_errors.CASES,
    *cases_crash.CASES,
)
