"""The order in which a run scores files."""

from enum import StrEnum


class ScoringOrder(StrEnum):
    """Order in which files are scored."""

    PATH = "path"
    NEWEST = "newest"
    OLDEST = "oldest"
