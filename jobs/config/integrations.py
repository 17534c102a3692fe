"""The section `integrations` of a job file: other tools that receive runs and verdicts."""

from pydantic import Field, field_validator

from ragassay.jobs.config.section import Section
from ragassay.jobs.display.address import format_server


class OpenLineage(Section):
    """The OpenLineage server that receives an event when a run starts or ends.

    Attributes:
        url: Its address; null takes OPENLINEAGE_URL, and sends nothing if that is not set either.
        namespace: Namespace of the job.
        job: Name of the job, before `.run`, `.score`, `.finalize` or `.escalate`; null is `ragassay.` and the last name of
            OUTPUT.
    """

    url: str | None = None
    namespace: str = "ragassay"
    job: str | None = None

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url:
            format_server(url)
        return url


class Publish(Section):
    """How `publish` sends verdicts.

    Attributes:
        name: Name of the score in the tool.
        trace_column: Column of the trace's id; null takes trace_id if it exists, otherwise row_id.
        span_column: Column of the span's id; null takes the tool's usual column if it exists, an empty name takes none.
        sentences: Send every sentence as metadata, with its place, score and flag.
        text: Quote flagged sentences and what the context lacks; false sends their places only.
        per_second: Maximum requests per second; null sets no limit.
    """

    name: str = Field("ragassay", min_length=1)
    trace_column: str | None = None
    span_column: str | None = None
    sentences: bool = False
    text: bool = True
    per_second: float | None = Field(None, ge=0.001)


class IntegrationsConfig(Section):
    """Other tools that receive runs and verdicts.

    Attributes:
        openlineage: The OpenLineage server.
        publish: How `publish` sends verdicts.
    """

    openlineage: OpenLineage = OpenLineage()
    publish: Publish = Publish()
