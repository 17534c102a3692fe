"""Error messages of this folder."""

from ragassay.pipeline.errors import Message

STAGES_DO_NOT_FIT = Message("plan.stages-do-not-fit", "the columns of this plan's stages do not match: {mismatches}")
