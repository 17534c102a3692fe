"""Send the events of a run to an OpenLineage server: start, completion or failure. An unreachable server fails no run."""

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
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError, InstallError, RagassayError
from ragassay.pipeline.install import import_package
from ragassay.schemas.manifest import Run

TIMEOUT_SECONDS = 5.0  # seconds
_RETRY = {"total": 1, "read": 1, "connect": 1, "backoff_factor": 0.1}
_PURPOSE = "`integrations.openlineage`"
_PRODUCER = "urn:ragassay"
_VARIABLE = "OPENLINEAGE_URL"


@contextmanager
def send_run_events(
    settings: OpenLineage, step: str, logs: Logs | None, output: Folder, run: Run, console: Console
) -> Iterator[Callable[[Run], None]]:
    """Send START now, and COMPLETE or FAIL at the end of the block. Without a server, send nothing.

    Args:
        settings: The job's `integrations.openlineage`.
        step: run, score, finalize or escalate; part of the job's name.
        logs: The input; None if it is OUTPUT/raw.
        output: The output folder.
        run: The run's record at the start.
        console: Prints a warning, once, if the server does not answer.

    Yields:
        A function that takes the run's record at the end; COMPLETE contains its counts.

    Raises:
        InstallError: The job file names a server, but the client is not installed.
    """
    emitter = _make_emitter(settings, step, logs, output, run, console)
    if emitter is None:
        yield lambda _: None
        return
    emitter.emit("START")
    try:
        yield emitter.set_final_run
    except BaseException as error:
        # Other errors may quote the logs.
        emitter.emit("FAIL", str(error) if isinstance(error, RagassayError) else type(error).__name__)
        raise
    emitter.emit("COMPLETE")


def _make_emitter(
    settings: OpenLineage, step: str, logs: Logs | None, output: Folder, run: Run, console: Console
) -> "_RunEventEmitter | None":
    """Return the emitter of a run's events; None without a server.

    A server named by the environment may be meant for other programs, so a fault there does not fail the run.
    """
    url = settings.url or os.environ.get(_VARIABLE)
    if not url:
        return None
    try:
        return _RunEventEmitter(url, format_server(url), settings, step, logs, output, run, console)
    except (InputError, InstallError, ValueError) as error:
        if settings.url:
            raise
        reason = f"{error}" if isinstance(error, RagassayError) else f"{_VARIABLE} {error}"
        console.print(f"warning: no OpenLineage events are sent for this run: {reason}", markup=False)
        return None


class _RunEventEmitter:
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
        self._events = import_package("openlineage.client.event_v2", _PURPOSE)
        self._facets = import_package("openlineage.client.facet_v2", _PURPOSE)
        client = import_package("openlineage.client", _PURPOSE)
        transport: dict[str, Any] = {"type": "http", "url": url, "timeout": TIMEOUT_SECONDS, "retry": _RETRY}
        if key := os.environ.get("OPENLINEAGE_API_KEY"):
            transport["auth"] = {"type": "api_key", "api_key": key}
        self._client = client.OpenLineageClient(config={"transport": transport})
        self._server, self._logs, self._output, self._run, self._console = server, logs, output, run, console
        name = settings.job or f"ragassay.{PurePosixPath(output.root).name}"
        self._job = self._events.Job(hide_secrets(settings.namespace), hide_secrets(f"{name}.{step}"))
        self._has_warned = False
        ids = import_package("openlineage.client.uuid", _PURPOSE)
        self._id = str(ids.generate_static_uuid(datetime.fromisoformat(run.started), f"{output.address}#{run.run_id}".encode()))

    def set_final_run(self, run: Run) -> None:
        """Set the run's record at its end."""
        self._run = run

    def emit(self, state: str, message: str | None = None) -> None:
        """Send an event; print one warning if the server does not accept it."""
        try:
            facets = {}
            if message is not None:
                facets["errorMessage"] = self._facets.error_message_run.ErrorMessageRunFacet(message, "python")
            event = self._events.RunEvent(
                eventType=self._events.RunState[state],
                eventTime=datetime.now(UTC).isoformat(timespec="milliseconds"),
                run=self._events.Run(self._id, facets),
                job=self._job,
                producer=_PRODUCER,
                inputs=[self._input_dataset()],
                outputs=[self._output_dataset(is_complete=state == "COMPLETE")],
            )
            self._client.emit(event)
        except Exception as error:
            if not self._has_warned:
                # The message of the error itself may quote secrets.
                reason = type(error).__name__
                line = f"warning: the OpenLineage server {self._server} accepted no event ({reason}); the run continues"
                self._console.print(line, markup=False)
            self._has_warned = True

    def _input_dataset(self) -> Any:
        logs, events = self._logs, self._events
        if logs is None:
            return events.InputDataset(*_dataset_name(self._output.format_address("raw")))
        facets: dict[str, Any] = {"schema": self._schema(_logs_schema(logs))}
        name = _table_name(logs) or _dataset_name(logs.uri)
        if logs.source is not None and logs.source.version is not None:
            version = self._facets.dataset_version_dataset.DatasetVersionDatasetFacet(str(logs.source.version))
            facets["version"] = version
        count = self._facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=sum(file.rows or 0 for file in logs.files),
            size=logs.size,
            fileCount=len(logs.files),
        )
        return events.InputDataset(*name, facets=facets, inputFacets={"inputStatistics": count})

    def _output_dataset(self, *, is_complete: bool) -> Any:
        dataset_name = _dataset_name(self._output.format_address("scored"))
        if not is_complete:
            return self._events.OutputDataset(*dataset_name)
        scored = open_scored(self._output)
        facets = {"schema": self._schema(scored.schema_of(scored.files[0]))} if scored.files else {}
        rows = self._run.rows.get("scored", 0) + self._run.rows.get("failed", 0)
        count = self._facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        return self._events.OutputDataset(*dataset_name, facets=facets, outputFacets={"outputStatistics": count})

    def _schema(self, schema: pa.Schema) -> Any:
        kinds = self._facets.schema_dataset
        return kinds.SchemaDatasetFacet([kinds.SchemaDatasetFacetFields(f.name, str(f.type)) for f in schema])


def _logs_schema(logs: Logs) -> pa.Schema:
    """Return the columns of the first file, and the keys of its partition."""
    first = next((file for file in logs.files if file.schema is not None), None)
    if first is None or first.schema is None:
        return pa.schema([])
    keys = [pa.field(key, pa.string()) for key, _ in first.partition if key not in first.schema.names]
    return pa.schema([*first.schema, *keys])


def _table_name(logs: Logs) -> tuple[str, str] | None:
    """Return namespace and name of a table in a catalog; None for files."""
    if logs.source is None or "://" not in logs.source.table:
        return None
    scheme, _, rest = strip_credentials(logs.source.table).partition("://")
    host, _, name = rest.partition("/")
    return f"{scheme}://{host}", name or host


def _dataset_name(address: str) -> tuple[str, str]:
    """Return namespace and name of files in OpenLineage's form: `file` and a path, or s3://bucket and a key."""
    scheme, sign, rest = strip_credentials(address).partition("://")
    if not sign or scheme == "file":
        return "file", open_folder(address).root
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", unquote(key).rstrip("/") or "/"
