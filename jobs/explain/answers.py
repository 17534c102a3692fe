"""Answers of the reasoner on disk, from the moment they come until their rows are written: what is paid for is kept."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ragassay.jobs.storage import Folder
from ragassay.pipeline.engines.text import Completion
from ragassay.schemas.explanations import Outcome

ANSWERS = "explanations/_answers"
_ENDS = _NEW, _COUNTED = (".json", ".counted")


class AnswerFiles:
    """A file an answer, of one strategy. See `pipeline.explain.ask.Answers`."""

    def __init__(self, output: Folder, strategy: str) -> None:
        """Look at what is there.

        Args:
            output: The output folder.
            strategy: Whose answers.
        """
        self._output, self._place = output, f"{ANSWERS}/{strategy}"
        self._names = {
            name.rpartition(".")[0]: name
            for end in _ENDS
            for name in (info.base_name for info in output.list(self._place, end))
        }

    def get(self, request: str) -> Completion | None:
        """See `Answers.get`."""
        text = self._output.read(f"{self._place}/{self._names[request]}") if request in self._names else None
        if text is None:
            return None
        data = json.loads(text)
        return Completion(**{**data, "outcome": Outcome(data["outcome"])})

    def put(self, request: str, completion: Completion) -> None:
        """See `Answers.put`."""
        self._write(request, completion, _NEW)

    def keep(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Keep the answers of rows that are about to go: an earlier run has counted what they cost.

        Args:
            entries: As `schemas.explanations.EXPLANATION` has them.
        """
        for entry in entries:
            if entry["request"] and entry["answer"] is not None and entry["request"] not in self._names:
                tokens = entry["prompt_tokens"], entry["completion_tokens"]
                self._write(entry["request"], Completion(Outcome.OK, entry["answer"], *tokens), _COUNTED)

    def _write(self, request: str, completion: Completion, end: str) -> None:
        self._output.write(f"{self._place}/{request}{end}", json.dumps(asdict(completion)))
        self._names[request] = request + end

    def uncounted(self) -> list[Completion]:
        """Answers that came since the last run ended."""
        found = (self.get(request) for request, name in self._names.items() if name.endswith(_NEW))
        return [completion for completion in found if completion is not None]

    def counted(self) -> set[str]:
        """Requests whose answers an earlier run has counted."""
        return {request for request, name in self._names.items() if name.endswith(_COUNTED)}

    def forget(self, written: Collection[str]) -> None:
        """Delete the answers to requests that stand in rows; what no row needs now stays, since it was paid for."""
        for request in self._names.keys() & set(written):
            self._output.delete(f"{self._place}/{self._names.pop(request)}")
