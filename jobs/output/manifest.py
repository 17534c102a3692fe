"""Read and write the manifest of an output folder."""

from ragassay.jobs.output import errors
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import SCHEMA_VERSION
from ragassay.schemas.manifest import Manifest

MANIFEST = "manifest.json"


def read_manifest(output: Folder) -> Manifest:
    """Read the manifest of an output folder; return an empty one if it does not exist.

    Raises:
        OutputError: The manifest can't be read or has another version, or the folder contains Parquet files of another origin.
    """
    text = output.read(MANIFEST)
    if text is None:
        if output.list("", ".parquet"):
            raise OutputError(errors.FOREIGN, output=output.uri, manifest=MANIFEST)
        return Manifest()
    try:
        manifest = Manifest.from_json(text)
    except ValueError as error:
        raise OutputError(errors.UNREADABLE_MANIFEST, path=f"{output.uri}/{MANIFEST}", reason=error) from error
    schema = manifest.fingerprint.get("schema", SCHEMA_VERSION)
    if schema != SCHEMA_VERSION:
        raise OutputError(errors.OTHER_VERSION, output=output.uri, part="schema", version=schema, expected=SCHEMA_VERSION)
    return manifest


def write_manifest(output: Folder, manifest: Manifest) -> None:
    """Write the manifest of an output folder."""
    output.write(MANIFEST, manifest.to_json())


def has_text(manifest: Manifest) -> bool:
    """Return whether an output contains the texts of its rows; with `output.drop_text` it does not."""
    return manifest.fingerprint.get("drop_text") is None


def require_text(manifest: Manifest, uri: str, reader: str) -> None:
    """Refuse an output without texts.

    Args:
        manifest: Manifest of the output.
        uri: URI of the output.
        reader: What needs the texts, for the message.

    Raises:
        OutputError: The output was written with `output.drop_text`.
    """
    if not has_text(manifest):
        raise OutputError(errors.NO_TEXT, output=uri, need=reader)


def open_output(uri: str) -> Folder:
    """Open an output folder that contains a run.

    Raises:
        OutputError: The folder has no manifest.
    """
    output = open_folder(uri)
    if output.read(MANIFEST) is None:
        raise OutputError(errors.MISSING, output=uri, manifest=MANIFEST)
    return output
