"""Answers of the reasoner on disk, from the moment they come until their rows are written: what is paid for is kept."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ragassay.jobs.second_pass.explain.entries import read_entries
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.engines.text import Completion
from ragassay.schemas.explanations import EXPLANATIONS, RETRIED_STATUSES, AnswerStatus

_NEW, _COUNTED = ".json", ".counted"


ANSWERS = f"{EXPLANATIONS}/_answers"


def answers_folder(strategy: str) -> str:
    """Folder of a strategy's answers below the output folder."""
    return f"{ANSWERS}/{strategy}"


class AnswerFiles:
    """A file an answer, of one strategy; what stands in rows already is known too. See `pipeline.reasoning.ask.Answers`."""

    def __init__(self, output: Folder, strategy: str, written: Mapping[str, Completion] | None = None) -> None:
        """Look at what is there.

        Args:
            output: The output folder.
            strategy: Whose answers.
            written: Answers that stand in rows already, see `written_answers`; whoever only keeps and counts needs none.
        """
        self._output, self._place = output, answers_folder(strategy)
        self._counted = self._listed(_COUNTED)
        self._written = written or {}

    def get(self, request: str) -> Completion | None:
        """See `Answers.get`. Another replica may have had the answer a moment ago, so it is looked for on disk."""
        if request in self._written:
            return self._written[request]
        return self._read(request + (_COUNTED if request in self._counted else _NEW))

    def put(self, request: str, completion: Completion) -> None:
        """See `Answers.put`."""
        self._write(request + _NEW, completion)

    def keep_answers(self, gone: Iterable[Mapping[str, Any]]) -> None:
        """Keep the answers of rows that are about to go.

        Args:
            gone: Entries as `schemas.explanations.EXPLANATION` has them. Those that no run has counted are kept as they are.
        """
        kept = self._counted | self._listed(_NEW)
        for entry in gone:
            if _is_final(entry) and entry["request"] not in kept | self._counted:
                self._write(entry["request"] + _COUNTED, _completion(entry))
                self._counted.add(entry["request"])

    def read_uncounted(self) -> dict[str, Completion]:
        """Answers that no run has counted yet."""
        found = {request: self._read(request + _NEW) for request in self._listed(_NEW) - self._counted}
        return {request: completion for request, completion in found.items() if completion is not None}

    def delete_written(self, written: Collection[str]) -> None:
        """At the end of a run, which has counted all: delete answers that stand in rows; the others stay, as counted ones."""
        for request in self._listed(_NEW):
            if request not in written and (completion := self._read(request + _NEW)) is not None:
                self._write(request + _COUNTED, completion)
            self._output.delete(f"{self._place}/{request}{_NEW}")
        for request in self._counted & set(written):
            self._output.delete(f"{self._place}/{request}{_COUNTED}")
        if not self._output.list(ANSWERS, ""):
            self._output.delete(ANSWERS)

    def _listed(self, end: str) -> set[str]:
        return {info.base_name.removesuffix(end) for info in self._output.list(self._place, end)}

    def _read(self, name: str) -> Completion | None:
        text = self._output.read(f"{self._place}/{name}")
        if text is None:
            return None
        data = json.loads(text)
        return Completion(**{**data, "status": AnswerStatus(data["status"])})

    def _write(self, name: str, completion: Completion) -> None:
        self._output.write(f"{self._place}/{name}", json.dumps(asdict(completion)))


def read_written_answers(output: Folder, strategy: str) -> dict[str, Completion]:
    """Answers that stand in rows. To be read before a plan writes more: a file of which only half is there can't be."""
    return {entry["request"]: _completion(entry) for _, entry in read_entries(output, strategy) if _is_final(entry)}


def _is_final(entry: Mapping[str, Any]) -> bool:
    return entry["request"] is not None and entry["status"] not in RETRIED_STATUSES


def _completion(entry: Mapping[str, Any]) -> Completion:
    """The answer that an explanation was read from."""
    tokens = entry["prompt_tokens"], entry["completion_tokens"]
    if entry["status"] == AnswerStatus.OK:  # its error, if any, is about its evidence
        return Completion(AnswerStatus.OK, entry["answer"], *tokens)
    outcome = AnswerStatus(entry["status"]) if entry["answer"] is None else AnswerStatus.OK
    return Completion(outcome, entry["answer"], *tokens, error=entry["error"])
