"""What an export can contain."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """What the rows of an export contain. The suffix of the file decides how they are written."""

    VERDICTS = "verdicts"
    MESSAGES = "messages"
    EXAMPLES = "examples"
    DPO = "dpo"
    FLAGGED = "flagged"
    LABEL_STUDIO = "label-studio"
    ARGILLA = "argilla"


TOOL_FORMATS = {ExportFormat.LABEL_STUDIO, ExportFormat.ARGILLA}
TABLE_FORMATS = {ExportFormat.VERDICTS, ExportFormat.FLAGGED}
"""Formats with the user's own columns."""

REVIEW_FORMATS = {ExportFormat.VERDICTS, ExportFormat.FLAGGED, ExportFormat.LABEL_STUDIO, ExportFormat.ARGILLA}
