"""Measure what predicts a label without the context: `python -m ragassay.jobs.training.shortcuts MIX.parquet`.

A verifier learns shortcuts if length, word overlap or the words of a statement reveal the label in its training data.
"""

import sys
from collections.abc import Sequence

import numpy as np
import polars as pl

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.text.words import collect_words, compute_context_share, extract_words

FOLDS = 5


def predict_from_statement(statements: Sequence[str], supported: Sequence[bool], groups: Sequence[int]) -> Floats:
    """Predict P(supported) from the words and word pairs of the statement alone, by cross-validation over groups.

    Args:
        statements: Texts.
        supported: Their labels, of both kinds.
        groups: Group (context) of each statement; at least FOLDS different ones.

    Returns:
        Probabilities of shape (statements,), 0 to 1.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    truth, predictions = np.array(supported), np.zeros(len(statements))
    texts = np.array(statements, dtype=object)
    for train, test in GroupKFold(FOLDS).split(texts, groups=groups):
        if truth[train].all() or not truth[train].any():
            predictions[test] = truth[train].mean()
            continue
        bag = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")
        model = LogisticRegression(C=3.0, max_iter=300).fit(bag.fit_transform(texts[train]), truth[train])
        predictions[test] = model.predict_proba(bag.transform(texts[test]))[:, 1]
    return predictions


def measure_overlap(statements: Sequence[str], contexts: Sequence[Sequence[str]]) -> Floats:
    """Return the share of each statement's words that its context contains."""
    return np.array(
        [compute_context_share(text, collect_words(context)) for text, context in zip(statements, contexts, strict=True)]
    )


def render_table(rows: pl.DataFrame) -> str:
    """Return a Markdown table with the AUROC of each shortcut, by source and in total.

    Args:
        rows: Columns `source`, `context`, `statement`, `supported`.
    """
    from sklearn.metrics import roc_auc_score

    lines = ["| source | statements | supported | statement alone | shorter | words in context |", "| --- |" + " --- |" * 5]
    unique_rows = rows.unique(["source", "statement", "supported"], maintain_order=True)
    for name, part in [*unique_rows.group_by("source", maintain_order=True), (("all",), unique_rows)]:
        truth, statements = part["supported"].to_list(), part["statement"].to_list()
        groups = part["context"].list.join("\n").rank("dense").to_list()
        if len(set(groups)) < FOLDS or len(set(truth)) < 2:
            continue
        cells = [
            roc_auc_score(truth, values)
            for values in (
                predict_from_statement(statements, truth, groups),
                [-len(extract_words(text)) for text in statements],
                measure_overlap(statements, part["context"].to_list()),
            )
        ]
        share = sum(truth) / len(truth)
        lines.append(f"| {name[0]} | {len(truth):,} | {share:.2f} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join(lines)


def list_statements(mix: pl.DataFrame) -> pl.DataFrame:
    """Return the labeled sentences of a mix; for rows without sentence labels, the response."""
    statements = []
    for row in mix.iter_rows(named=True):
        parts = [(row["response"][x["start"] : x["end"]], x["supported"]) for x in row["sentence_labels"] or []]
        for text, supported in parts or [(row["response"], row["label"] == "correct")]:
            statements.append({"source": row["source"], "context": row["context"], "statement": text, "supported": supported})
    return pl.DataFrame(statements)


if __name__ == "__main__":
    print(render_table(list_statements(pl.read_parquet(sys.argv[1]))))
