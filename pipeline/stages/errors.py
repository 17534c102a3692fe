"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

STAGES_DO_NOT_FIT = Message("plan.stages-do-not-fit", "the stages of this plan do not fit together: {shown}")
