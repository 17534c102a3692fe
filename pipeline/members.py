"""Members' values of rows: read from the columns of `raw/` and `scored/`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.contain import contain
from ragassay.pipeline.detectors.config import DETECTOR
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.slm.config import Value
from ragassay.pipeline.slm.score import member_values
from ragassay.schemas.columns import MEMBER, Status


def readable_scores(batch: pa.RecordBatch, values: Mapping[str, str]) -> list[tuple[dict[str, Floats], Ints]]:
    """`scores_of` stretches that are, together, a batch less the rows for which it raises: `finalize` gives those the status
    `error`."""
    found = contain(batch.num_rows, lambda some: scores_of(batch[some], values), lambda _, __: None)
    return [scores for scores in found if scores is not None]


def scores_of(batch: pa.RecordBatch, values: Mapping[str, str]) -> tuple[dict[str, Floats], Ints]:
    """Members' values of a batch of rows of `raw/` or `scored/`.

    Args:
        batch: Rows with `members` and `status`.
        values: Member -> which number is wanted.

    Returns:
        Member -> float64 array, the values of all sentences of the rows with status ok, one after the other, NaN where it has
        none; and the number of sentences a row with status ok.

    Raises:
        OutputError: The rows lack one of the members, or it is of another kind there.
    """
    structs = member_structs(batch, list(values))
    counts = np.array([], dtype=np.int64)
    for member in structs.values():
        counts = pc.list_value_length(member.field("sentence_scores")).to_numpy().astype(np.int64)
    return {name: _values(name, member, values[name]) for name, member in structs.items()}, counts


def _values(name: str, member: pa.StructArray, value: str) -> Floats:
    """A member's number of every sentence, NaN where it has none: a detector's own, or one made of an SLM's log P."""
    yes = member.field("log_p_yes")
    if (len(yes) - yes.null_count) if value == DETECTOR else yes.null_count:
        kind, other = ("an SLM", "a detector") if value == DETECTOR else ("a detector", "an SLM")
        raise OutputError(f"member {name!r} is {kind} in these scores, and {other} in the job file: name it as what it is")
    if value == DETECTOR:
        return np.asarray(member.field("sentence_scores").flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    return member_values(Value(value), *(member.field(key).flatten().to_numpy() for key in ("log_p_yes", "log_p_no")))


def member_structs(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.StructArray]:
    """What each member says of the rows with status ok: member -> one struct a row (`schemas.columns.MEMBER`).

    Raises:
        OutputError: The rows lack one of the members.
    """
    members = batch["members"].filter(pc.equal(batch["status"], Status.OK.value))
    if len(members) == 0:
        return {name: pa.array([], MEMBER) for name in names}
    size = len(members[0])
    flat = members.flatten()
    found = flat.field("name").to_numpy(zero_copy_only=False).reshape(-1, size)
    structs = {}
    for name in names:
        place = np.flatnonzero(found[0] == name)
        if len(place) != 1 or not (found[:, place[0]] == name).all():
            raise OutputError(f"the scored rows have no member {name!r}; they have {sorted(set(found[0]))}")
        structs[name] = flat.take(pa.array(np.arange(place[0], len(flat), size)))
    return structs
