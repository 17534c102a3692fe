"""Agreement of two readers who labeled answers again: `python -m tests.benchmarks.reread.agreement`.

The readers saw neither labels nor scores, nor each other's labels. They labeled each sentence of 120 random answers of RAGTruth
QA (`ragtruth_qa_dev`) and of the first 60 answers of BEGIN (`begin_dev`) as supported, added, contradicts or filler. Added and
contradicts are clear or minor. `start` and `end` are offsets into the response; the texts are not in this repository.
"""

from pathlib import Path

import polars as pl
from sklearn.metrics import cohen_kappa_score

LABELS = Path(__file__).with_name("labels.csv")
UNSUPPORTED = ("added", "contradicts")


def agreement(labels: pl.DataFrame) -> dict[str, float]:
    """Compute shares of unsupported sentences and Cohen's kappa, for all unsupported sentences and for the clear ones."""
    figures: dict[str, float] = {"answers": labels["id"].n_unique(), "sentences": len(labels)}
    for name, column, values in (
        ("unsupported", "label", UNSUPPORTED),
        ("clear", "strength", ("clear",)),
        ("contradicts", "label", ("contradicts",)),
    ):
        a, b = (labels[f"{column}_{reader}"].fill_null("").is_in(values).to_numpy() for reader in "ab")
        figures |= {f"{name} a": a.mean(), f"{name} b": b.mean(), f"{name} agree": (a == b).mean()}
        figures[f"{name} kappa"] = cohen_kappa_score(a, b)
    return figures


def main() -> None:
    """Print the agreement for each set."""
    labels = pl.read_csv(LABELS)
    for name, part in labels.group_by("set", maintain_order=True):
        print(name[0], {key: round(float(value), 3) for key, value in agreement(part).items()})


if __name__ == "__main__":
    main()
