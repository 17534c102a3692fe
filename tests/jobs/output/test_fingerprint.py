"""Scores of another fingerprint are refused, with what differs and what to do."""

from ragassay.jobs.config.job import make_job
from ragassay.jobs.output.fingerprint import check_fingerprint, make_fingerprint
from tests.jobs.verdicts.test_resolve_parts import NOVELTY
from tests.raises import raises


def test_a_later_row_id_is_refused_with_the_way_to_match_labels_without_it() -> None:
    before, after = make_job(NOVELTY), make_job({**NOVELTY, "input": {"columns": {"row_id": "ticket"}}})
    with raises("output.other-settings", settings=["input.columns.row_id"]) as error:
        check_fingerprint(make_fingerprint(before), make_fingerprint(after), "out")
    assert "labels do not need row_id" in str(error.value)
