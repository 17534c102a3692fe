"""What tells a label without reading the context: `python -m ragassay.jobs.training.shortcuts MIX.parquet`.

A judge that is trained where length, word overlap or the statement's own words give the label away learns those.
"""

import sys
from collections.abc import Sequence

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.calibration.baselines import share_in_context, words, words_of

FOLDS = 5


def statement_alone(statements: Sequence[str], supported: Sequence[bool], groups: Sequence[int]) -> Floats:
    """P(supported) by a bag of words and word pairs of the statement alone, of every statement by those of other groups.

    Args:
        statements: Texts.
        supported: Their labels; of both kinds.
        groups: Statements of one group (of one context) are predicted together; at least FOLDS different ones.

    Returns:
        (statements), 0 to 1.
    """
    truth, found = np.array(supported), np.zeros(len(statements))
    texts = np.array(statements, dtype=object)
    for train, test in GroupKFold(FOLDS).split(texts, groups=groups):
        if truth[train].all() or not truth[train].any():
            found[test] = truth[train].mean()
            continue
        bag = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")
        model = LogisticRegression(C=3.0, max_iter=300).fit(bag.fit_transform(texts[train]), truth[train])
        found[test] = model.predict_proba(bag.transform(texts[test]))[:, 1]
    return found


def overlap_of(statements: Sequence[str], contexts: Sequence[Sequence[str]]) -> Floats:
    """Share of each statement's words that its context has."""
    return np.array([share_in_context(text, words_of(context)) for text, context in zip(statements, contexts, strict=True)])


def table(rows: pl.DataFrame) -> str:
    """AUROC of the shortcuts, of each source and of all together, as Markdown.

    Args:
        rows: `source`, `context`, `statement`, `supported`.
    """
    lines = ["| source | statements | supported | statement alone | shorter | words in context |", "| --- |" + " --- |" * 5]
    once = rows.unique(["source", "statement", "supported"], maintain_order=True)  # one may stand over several contexts
    for name, part in [*once.group_by("source", maintain_order=True), (("all",), once)]:
        good, said = part["supported"].to_list(), part["statement"].to_list()
        groups = part["context"].list.join("\n").rank("dense").to_list()
        if len(set(groups)) < FOLDS or len(set(good)) < 2:
            continue
        cells = [
            roc_auc_score(good, values)
            for values in (
                statement_alone(said, good, groups),
                [-len(words(text)) for text in said],
                overlap_of(said, part["context"].to_list()),
            )
        ]
        share = sum(good) / len(good)
        lines.append(f"| {name[0]} | {len(good):,} | {share:.2f} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join(lines)


def statements_of(mix: pl.DataFrame) -> pl.DataFrame:
    """The labelled sentences of a mix; of rows without sentence labels, the response."""
    found = []
    for row in mix.iter_rows(named=True):
        parts = [(row["response"][x["start"] : x["end"]], x["supported"]) for x in row["sentence_labels"] or []]
        for text, supported in parts or [(row["response"], row["label"] == "correct")]:
            found.append({"source": row["source"], "context": row["context"], "statement": text, "supported": supported})
    return pl.DataFrame(found)


if __name__ == "__main__":
    print(table(statements_of(pl.read_parquet(sys.argv[1]))))
