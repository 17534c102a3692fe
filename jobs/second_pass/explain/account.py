"""What a run of `explain` has done and spent, counted from what stands in `explanations/`, and what broke off before it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ragassay.jobs.output.sidecar import open_explanations
from ragassay.jobs.second_pass.explain.answers import AnswerFiles
from ragassay.jobs.second_pass.explain.entries import read_entries
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.cost_budget import CostBudget
from ragassay.schemas.explained import ExplainRun
from ragassay.schemas.explanations import AnswerStatus
from ragassay.schemas.manifest import Manifest

AGREEMENT = {True: "consistent", False: "inconsistent", None: "can't tell"}


def count_results(
    output: Folder, manifest: Manifest, run: ExplainRun, reasoner: Reasoner, wanted: Mapping[int, tuple[int, ...]]
) -> None:
    """Count what the chosen rows have and what this run, with what broke off before it, has had answered.

    Args:
        output: The output folder.
        manifest: Its manifest, with the runs that ended.
        run: The record to fill.
        reasoner: Says what tokens cost.
        wanted: `row_key` of each chosen row -> numbers of its flagged sentences.

    Raises:
        BalanceError: A flagged sentence has not exactly one outcome.
    """
    found: list[tuple[int, int]] = []
    statuses, categories, agreed = Counter[str](), Counter[str](), Counter[str]()
    finished = {before.run_id for before in manifest.explained}
    counted: set[str] = set()
    for row, entry in read_entries(output, run.strategy):
        if entry["request"] and row["run_id"] in finished:
            counted.add(entry["request"])
        if row["row_key"] not in wanted:
            continue
        found.append((row["row_key"], entry["sentence"]))
        statuses[entry["status"]] += 1
        if entry["status"] == AnswerStatus.OK:
            agreed[AGREEMENT[entry["consistent"]]] += 1
            run.with_evidence += entry["evidence"] is not None
            categories.update([entry["category"]] if entry["category"] else [])
    pairs = [(key, sentence) for key, sentences in wanted.items() for sentence in sentences]
    open_explanations(output, run.strategy).check_outcomes(_pairs(pairs), _pairs(found))
    answers = AnswerFiles(output, run.strategy)
    # Each answer is kept apart until a run has counted it, whatever became of the run that asked, and of the row.
    paid = {
        r: (answer.prompt_tokens, answer.completion_tokens)
        for r, answer in answers.read_uncounted().items()
        if r not in counted
    }
    run.statuses, run.categories, run.agreed = dict(statuses), dict(categories.most_common()), dict(agreed)
    run.questions = len(paid)
    run.prompt_tokens, run.completion_tokens = (sum(tokens[i] for tokens in paid.values()) for i in (0, 1))
    if reasoner.price is not None:
        run.dollars = reasoner.price.compute_cost(run.prompt_tokens, run.completion_tokens)


def make_cost_budget(output: Folder, strategy: str, reasoner: Reasoner, dollars: float) -> CostBudget:
    """What may still be spent of a budget: what a run that broke off has spent, or a replica that died, was of it."""
    assert reasoner.price is not None
    kept = AnswerFiles(output, strategy).read_uncounted().values()
    spent = sum(reasoner.price.compute_cost(answer.prompt_tokens, answer.completion_tokens) for answer in kept)
    return CostBudget(reasoner.price, dollars - spent, reasoner.max_tokens)


def _pairs(pairs: Sequence[tuple[int, int]]) -> Ints:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
