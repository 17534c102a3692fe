from ragassay.jobs.config.output import DropText
from tests.jobs.config.texts import assert_refused, job_of


def test_drop_text_is_a_boolean_or_a_list_of_kept_columns() -> None:
    assert job_of("output: {drop_text: false}").output.drop_text is None
    assert job_of("output: {drop_text: true}").output.drop_text == DropText()
    assert job_of("output: {drop_text: {keep: [tenant]}}").output.drop_text == DropText(keep=("tenant",))
    assert_refused("output: {drop_text: {kep: [tenant]}}", "config.unknown-key")
