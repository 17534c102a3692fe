"""Agreement of two readers who labeled answers again: `python -m tests.benchmarks.reread.agreement`.

The readers saw neither labels nor scores, nor each other's labels. They labeled each sentence of 120 random answers of RAGTruth
QA (`ragtruth_qa_dev`) and of the first 60 answers of BEGIN (`begin_dev`) as supported, added, contradicts or filler. Added and
contradicts are clear or minor. `start` and `end` are offsets into the response; the texts are not in this repository.
"""

from pathlib import Path

import polars as pl

from ragassay.pipeline.calibration.kappa import measure_agreement

LABELS = Path(__file__).with_name("labels.csv")
UNSUPPORTED = ("added", "contradicts")


def compute_figures(labels: pl.DataFrame) -> dict[str, float]:
    """Compute shares of unsupported sentences and Cohen's kappa, for all unsupported sentences and for the clear ones."""
    figures: dict[str, float] = {"answers": labels["id"].n_unique(), "sentences": len(labels)}
    for name, column, values in (
        ("unsupported", "label", UNSUPPORTED),
        ("clear", "strength", ("clear",)),
        ("contradicts", "label", ("contradicts",)),
    ):
        a, b = (labels[f"{column}_{reader}"].fill_null("").is_in(values).to_numpy() for reader in "ab")
        agreement = measure_agreement(list(zip(a, b, strict=True)))
        assert agreement is not None and agreement.kappa is not None
        figures |= {f"{name} a": a.mean(), f"{name} b": b.mean(), f"{name} agree": agreement.share}
        figures[f"{name} kappa"] = agreement.kappa
    return figures


def main() -> None:
    """Print the agreement for each set."""
    labels = pl.read_csv(LABELS)
    for name, part in labels.group_by("set", maintain_order=True):
        print(name[0], {key: round(float(value), 3) for key, value in compute_figures(part).items()})


if __name__ == "__main__":
    main()
