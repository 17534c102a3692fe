"""Events of a run for an OpenLineage server: it starts, it ends well, or it fails. A server that is down fails no run."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from rich.console import Console

from ragassay.jobs.config.integrations import OpenLineage
from ragassay.jobs.display.address import format_server, hide_secrets, strip_credentials
from ragassay.jobs.input.files import Logs
from ragassay.jobs.input.tables.access import import_library
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError, RagassayError
from ragassay.schemas.manifest import Run

TIMEOUT = 5.0  # seconds
_RETRY = {"total": 1, "read": 1, "connect": 1, "backoff_factor": 0.1}
_WHAT = "telling an OpenLineage server of runs"
_PRODUCER = "urn:ragassay"
_VARIABLE = "OPENLINEAGE_URL"


@contextmanager
def run_events(
    settings: OpenLineage, step: str, logs: Logs | None, output: Folder, run: Run, console: Console
) -> Iterator[Callable[[Run], None]]:
    """Send events of a run: START now, COMPLETE or FAIL when the block has ended. Nothing, where no server is named.

    Args:
        settings: The job's `integrations.openlineage`.
        step: run, score, finalize or escalate: part of the name of the job.
        logs: What it reads; None where that is OUTPUT/raw.
        output: The output folder.
        run: The run's record as it begins.
        console: Where it is said, once, that the server does not answer.

    Yields:
        What takes the run's record as it ends, whose counts COMPLETE has.

    Raises:
        InputError: The job file names a server, and the client is not installed.
    """
    teller = _teller(settings, step, logs, output, run, console)
    if teller is None:
        yield lambda _: None
        return
    teller.tell("START")
    try:
        yield teller.end
    except BaseException as error:
        # Other errors may quote the logs.
        teller.tell("FAIL", str(error) if isinstance(error, RagassayError) else type(error).__name__)
        raise
    teller.tell("COMPLETE")


def _teller(
    settings: OpenLineage, step: str, logs: Logs | None, output: Folder, run: Run, console: Console
) -> "_Teller | None":
    """Who tells; None where no server is named. What the environment names may be meant for others: no run fails for that."""
    url = settings.url or os.environ.get(_VARIABLE)
    if not url:
        return None
    try:
        return _Teller(url, format_server(url), settings, step, logs, output, run, console)
    except (InputError, ValueError) as error:
        if settings.url:
            raise
        said = f"{error}" if isinstance(error, InputError) else f"{_VARIABLE} {error}"
        console.print(f"warning: no OpenLineage server is told of this run: {said}", markup=False)
        return None


class _Teller:
    def __init__(
        self,
        url: str,
        server: str,
        settings: OpenLineage,
        step: str,
        logs: Logs | None,
        output: Folder,
        run: Run,
        console: Console,
    ) -> None:
        self._events = import_library("openlineage.client.event_v2", _WHAT)
        self._facets = import_library("openlineage.client.facet_v2", _WHAT)
        client = import_library("openlineage.client", _WHAT)
        transport: dict[str, Any] = {"type": "http", "url": url, "timeout": TIMEOUT, "retry": _RETRY}
        if key := os.environ.get("OPENLINEAGE_API_KEY"):
            transport["auth"] = {"type": "api_key", "api_key": key}
        self._client = client.OpenLineageClient(config={"transport": transport})
        self._server, self._logs, self._output, self._run, self._console = server, logs, output, run, console
        name = settings.job or f"ragassay.{PurePosixPath(output.root).name}"
        self._job = self._events.Job(hide_secrets(settings.namespace), hide_secrets(f"{name}.{step}"))
        self._silent = False
        ids = import_library("openlineage.client.uuid", _WHAT)
        self._id = str(ids.generate_static_uuid(datetime.fromisoformat(run.started), f"{output.address}#{run.run_id}".encode()))

    def end(self, run: Run) -> None:
        """Take the run's record as it ends."""
        self._run = run

    def tell(self, state: str, error: str | None = None) -> None:
        """Send an event; say so, once, where nobody takes it."""
        try:
            facets = {}
            if error is not None:
                facets["errorMessage"] = self._facets.error_message_run.ErrorMessageRunFacet(error, "python")
            event = self._events.RunEvent(
                eventType=self._events.RunState[state],
                eventTime=datetime.now(UTC).isoformat(timespec="milliseconds"),
                run=self._events.Run(self._id, facets),
                job=self._job,
                producer=_PRODUCER,
                inputs=[self._input()],
                outputs=[self._output_set(done=state == "COMPLETE")],
            )
            self._client.emit(event)
        except Exception as reason:
            if not self._silent:
                said = type(reason).__name__
                line = f"warning: the OpenLineage server {self._server} took no event ({said}); the run goes on without"
                self._console.print(line, markup=False)
            self._silent = True

    def _input(self) -> Any:
        logs, kinds = self._logs, self._events
        if logs is None:
            return kinds.InputDataset(*_place(self._output.format_address("raw")))
        facets: dict[str, Any] = {"schema": self._schema(_schema_of(logs))}
        name = _table(logs) or _place(logs.uri)
        if logs.source is not None and logs.source.version is not None:
            version = self._facets.dataset_version_dataset.DatasetVersionDatasetFacet(str(logs.source.version))
            facets["version"] = version
        count = self._facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=sum(file.rows or 0 for file in logs.files),
            size=logs.size,
            fileCount=len(logs.files),
        )
        return kinds.InputDataset(*name, facets=facets, inputFacets={"inputStatistics": count})

    def _output_set(self, *, done: bool) -> Any:
        place = _place(self._output.format_address("scored"))
        if not done:
            return self._events.OutputDataset(*place)
        scored = open_scored(self._output)
        facets = {"schema": self._schema(scored.schema_of(scored.files[0]))} if scored.files else {}
        rows = self._run.rows.get("scored", 0) + self._run.rows.get("failed", 0)
        count = self._facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        return self._events.OutputDataset(*place, facets=facets, outputFacets={"outputStatistics": count})

    def _schema(self, schema: pa.Schema) -> Any:
        kinds = self._facets.schema_dataset
        return kinds.SchemaDatasetFacet([kinds.SchemaDatasetFacetFields(f.name, str(f.type)) for f in schema])


def _schema_of(logs: Logs) -> pa.Schema:
    """Columns of the first file, and the keys of its partition."""
    first = next((file for file in logs.files if file.schema is not None), None)
    if first is None or first.schema is None:
        return pa.schema([])
    keys = [pa.field(key, pa.string()) for key, _ in first.partition if key not in first.schema.names]
    return pa.schema([*first.schema, *keys])


def _table(logs: Logs) -> tuple[str, str] | None:
    """Namespace and name of a table that a catalog knows."""
    if logs.source is None or "://" not in logs.source.table:
        return None
    scheme, _, rest = strip_credentials(logs.source.table).partition("://")
    place, _, name = rest.partition("/")
    return f"{scheme}://{place}", name or place


def _place(address: str) -> tuple[str, str]:
    """Namespace and name of files, as OpenLineage calls them: file and a path, or s3://bucket and a key."""
    scheme, sign, rest = strip_credentials(address).partition("://")
    if not sign or scheme == "file":
        return "file", open_folder(address).root
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", unquote(key).rstrip("/") or "/"
