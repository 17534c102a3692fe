"""What reading texts for a row took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragassay.pipeline.uncertainty.reader import Read


@dataclass(kw_only=True)
class Cost:
    """What was spent on a row.

    Attributes:
        prompts: Texts that were read,
        computed: tokens that were run for them,
        reused: tokens that others had,
        seconds: and how long it took.
    """

    prompts: int = 0
    computed: int = 0
    reused: int = 0
    seconds: float = 0.0

    def spent(self, reads: Sequence[Read]) -> None:
        """Add the cost of texts."""
        self.prompts += len(reads)
        self.computed += sum(read.computed for read in reads)
        self.reused += sum(read.reused for read in reads)
        self.seconds += sum(read.seconds for read in reads)

    def usage(self, name: str) -> dict[str, Any]:
        """As a struct of `schemas.columns.USAGE`."""
        return {
            "name": name,
            "prompts": self.prompts,
            "tokens_computed": self.computed,
            "tokens_reused": self.reused,
            "engine_seconds": self.seconds,
            "idle_seconds": 0.0,
        }
