"""The manifest of an output folder, on disk."""

from ragassay.jobs.output import errors
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import SCHEMA_VERSION
from ragassay.schemas.manifest import Manifest

MANIFEST = "manifest.json"


def read_manifest(output: Folder) -> Manifest:
    """The manifest of an output folder; an empty one where there is none.

    Raises:
        OutputError: It can't be read, is of another version, or the folder is not empty and not ours.
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
        raise OutputError(errors.OTHER_VERSION, output=output.uri, part="schema", version=schema, wanted=SCHEMA_VERSION)
    return manifest


def write_manifest(output: Folder, manifest: Manifest) -> None:
    """Write the manifest of an output folder."""
    output.write(MANIFEST, manifest.to_json())


def has_text(manifest: Manifest) -> bool:
    """Whether an output holds the texts of its rows; one that a job with `drop_text` made does not."""
    return manifest.fingerprint.get("drop_text") is None


def needs_text(manifest: Manifest, uri: str, what: str) -> None:
    """Refuse what reads texts for an output that holds none.

    Args:
        manifest: Of the output.
        uri: The output.
        what: What would read them.

    Raises:
        OutputError: A job with `drop_text` made it.
    """
    if not has_text(manifest):
        raise OutputError(errors.NO_TEXT, output=uri, need=what)


def existing_output(uri: str) -> Folder:
    """An output folder that holds a run.

    Raises:
        OutputError: There is none.
    """
    output = open_folder(uri)
    if output.read(MANIFEST) is None:
        raise OutputError(errors.MISSING, output=uri, manifest=MANIFEST)
    return output
