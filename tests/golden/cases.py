"""The list of cases."""

from tests.golden import cases_decide, cases_inputs, cases_runs, cases_tables, cases_traces
from tests.golden.scene import Case

CASES: tuple[Case, ...] = (
    *cases_inputs.CASES,
    *cases_runs.CASES,
    *cases_tables.CASES,
    *cases_traces.CASES,
    *cases_decide.CASES,
)
