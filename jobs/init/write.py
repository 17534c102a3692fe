"""The text of a job file: columns with the reasons for them, and the settings that one would touch first."""

from collections.abc import Iterable, Iterator, Sequence

from ragassay.jobs.init.found import Found
from ragassay.jobs.init.machine import Machine
from ragassay.jobs.init.members import members_text
from ragassay.jobs.init.names import Role
from ragassay.jobs.init.traces import Traces
from ragassay.jobs.init.wording import as_yaml, comment, listed, said

CHARS_A_TOKEN = 4  # roughly, of English


def job_text(found: Found, machine: Machine) -> str:
    """A job file that a run takes as it stands.

    Args:
        found: What is known of the logs.
        machine: Where it will run.
    """
    about = f"A job for {said(found.uri)}: {size_text(found)}. {length_text(found)}"
    labels, keys = [label.name for label in found.labels], found.keys
    rest = _rest(found.unreadable, keys[0] if keys else None, found.slices)
    return _written(_head(about), _columns(found), members_text(found.asked, machine), _verdicts(labels), rest)


def traces_text(found: Traces, machine: Machine) -> str:
    """The same for an export of traces.

    Args:
        found: What is known of the export.
        machine: Where it will run.
    """
    about = f"A job for {said(found.uri)}: {export_text(found)}. {kinds_text(found)}."
    rest = _rest(0, "dt", ["model", "trace_name"])
    return _written(_head(about), _preset(found), members_text(found.asked, machine), _verdicts(()), rest)


def _written(*parts: Iterable[str]) -> str:
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(about: str) -> Iterator[str]:
    yield from comment(about)
    yield from comment(
        "What stands behind a # is a default or an example; docs/job.yaml has every setting. Lines IN DOUBT are for you to "
        "check."
    )


def _preset(found: Traces) -> Iterator[str]:
    yield from comment("Every trace is a row, with question, context and response as docs/traces.md says.")
    for doubt in found.doubts:
        yield from comment(f"IN DOUBT: {doubt}")
    yield f"input: {{preset: {found.preset}}}"


def _columns(found: Found) -> Iterator[str]:
    yield "columns:                 # names of our columns in your logs"
    if found.messages is not None:
        yield from comment(f"messages: {'; '.join(found.messages.why)}", "  ")
        for doubt in found.messages.doubts:
            yield from comment(f"IN DOUBT: {doubt}", "  ")
        yield f"  messages: {as_yaml(found.messages.column)}"
    for role in Role if found.messages is None else ():
        if role not in found.taken:
            yield from comment("no question: no column's name or texts are like one", "  ")
            continue
        taken = found.taken[role]
        yield from comment(f"{role}: {'; '.join(taken.why)}", "  ")
        for doubt in taken.doubts:
            yield from comment(f"IN DOUBT: {doubt}", "  ")
        yield f"  {role}: {as_yaml(taken.column)}"
    yield from comment(f"row_id: {found.row_id_why}", "  ")
    yield f"  row_id: {as_yaml(found.row_id)}"
    for note in found.notes:
        yield from comment(f"IN DOUBT: {note}", "  ")


def _verdicts(labels: Sequence[str]) -> Iterator[str]:
    yield from comment(
        "What is flagged: this share of the responses, the worst ones, in place of a threshold that comes with the package."
    )
    yield "# threshold: {quantile: 0.1}"
    yield from comment(
        (
            f"Labels seem to be in {listed(labels)}: `ragassay evaluate` tells how good the verdicts are, and"
            if labels
            else "With labels,"
        )
        + " `ragassay calibrate` finds a threshold (docs/decisions.md), which goes here:"
    )
    yield "# calibration: audit/calibration.json"


def _rest(unreadable: int, key: str | None, slices: Sequence[str]) -> Iterator[str]:
    yield "# Language of the splitter and of stop words; xx for many languages."
    yield "# splitter: {name: sentencizer, language: en}"
    if unreadable:
        yield from comment(f"IN DOUBT: {unreadable} file(s) can't be read. A run stops at them, unless this says skip:")
    else:
        yield "# A file that can't be read stops a run; skip scores the rest."
    yield "# on_bad_file: skip"
    if key is not None:
        yield from comment(f"How far back tonight is compared: so many values of {said(key)}.")
        yield "# history: {partitions: 30}"
    if slices:
        yield from comment(f"For `--slice` of evaluate and report: {listed(slices)}.")


def export_text(found: Traces) -> str:
    """How large an export is."""
    return f"traces of {found.preset} in {_files_text(found)}"


def kinds_text(found: Traces) -> str:
    """What was seen in it."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.most_common())
    others = f"; records without a span: {found.others:,}" if found.others else ""
    return f"Of {found.records:,} records looked at, spans by kind: {kinds}; retrievals with texts: {found.told:,}{others}"


def size_text(found: Found) -> str:
    """How large logs are."""
    parts = f", {found.partitions:,} partition(s) by {listed(found.keys)}" if found.keys else ""
    rows = f"{found.rows:,} row{'s' if found.rows != 1 else ''}"
    return f"{rows} in {_files_text(found)}{parts}"


def _files_text(found: Found | Traces) -> str:
    return f"{found.files:,} file{'s' if found.files != 1 else ''}, {found.mib:,.1f} MiB"


def length_text(found: Found) -> str:
    """How long their texts are."""
    if not found.sampled:
        return "There is no row to look at yet, so names and types decided."
    tokens = sum(found.chars.values()) / CHARS_A_TOKEN
    lengths = ", ".join(f"{role} {chars:,.0f}" for role, chars in found.chars.items())
    return (
        f"Characters on average, of {found.sampled:,} rows looked at: {lengths}; roughly {tokens:,.0f} tokens a row, "
        f"{found.rows * tokens:,.0f} in all."
    )
