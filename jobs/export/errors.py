"""Messages of the errors that `export` raises."""

from ragassay.pipeline.errors import Message

SIMILARITY_OUT_OF_RANGE = Message(
    "export.similarity-out-of-range",
    "near duplicates: the similarity {similarity:g} is out of range; give a number above 0 and at most 1",
)
NO_NEAR_DUPLICATES = Message(
    "export.no-near-duplicates",
    "near duplicates can't be removed from {format}, only from messages and examples: drop the option",
)
PROMPT_OPTIONS = Message(
    "export.options-of-flagged",
    "verdicts and exports for reviewers have no prompts: drop the options for system, context and clean",
)
NO_ROWS = Message("export.no-rows", "output {output}: scored/ has no rows: run `ragassay finalize {output}` first")
NOTHING_PASSES = Message(
    "export.nothing-passes",
    "output {output}: {problem} ({rows:,} rows: {reasons}). Nothing was written; `ragassay finalize` can apply another "
    "threshold",
)
