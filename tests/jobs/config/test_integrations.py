from tests.jobs.config.texts import assert_refused, job_of


def test_faults_are_named() -> None:
    assert_refused("integrations: {openlineage: {url: 'ftp://h'}}", "integrations.openlineage.url")
    assert_refused("integrations: {publish: {per_second: 0}}", "integrations.publish.per_second")


def test_rare_settings_of_publish_have_the_defaults_of_its_options() -> None:
    publish = job_of("{}").integrations.publish
    assert (publish.name, publish.trace_column, publish.span_column, publish.per_second) == ("ragassay", None, None, None)
