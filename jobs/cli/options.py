"""Arguments and options that several commands share."""

from typing import Annotated

import typer

from ragassay.jobs.cli.panels import DRIFT_EXIT
from ragassay.jobs.scoring.order import ScoringOrder

Logs = Annotated[
    str,
    typer.Argument(
        metavar="INPUT", help="Logs: a file, folder, glob or URI; a Delta or Lance table; or iceberg://CATALOG/NS.TABLE."
    ),
]
Output = Annotated[str, typer.Argument(help="Output folder, as a path or URI.")]
Config = Annotated[str | None, typer.Option("--config", metavar="FILE", help="Job file (YAML); every setting has a default.")]
Calibration = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="Calibration written by `calibrate`, or bundled, or none; replaces the job file's.",
    ),
]
FailOnDrift = Annotated[
    bool, typer.Option("--fail-on-drift", help=f"Exit with code {DRIFT_EXIT} if the latest partition has drifted.")
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partitions",
        metavar="CONDITION",
        help='Only partitions whose hive keys match, such as "dt>=2026-11-01 and tenant!=test"; repeatable.',
    ),
]
FileOrder = Annotated[
    ScoringOrder, typer.Option("--order", help="Which files to score first: newest or oldest partitions, or by path.")
]
BudgetRows = Annotated[
    int | None,
    typer.Option("--budget-rows", metavar="N", min=1, help="Maximum rows to score, in whole files; the same command resumes."),
]
BudgetHours = Annotated[
    float | None,
    typer.Option(
        "--budget-hours", metavar="HOURS", min=0, help="Start no more rows after this many hours; the same command resumes."
    ),
]
Fraction = Annotated[
    float,
    typer.Option(
        "--fraction", metavar="F", min=0, max=1, help="Fraction of the rows to score, above 0, chosen by a hash of their ids."
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="Column of the labels: correct, partial, wrong, true, false …; null is none."
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="File of people's labels: CSV, TSV, JSON Lines, Parquet with the ids of rows, or Label Studio's FILE.json.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help="Only rows with this value, such as split=train; repeatable."),
]
Slices = Annotated[
    list[str] | None, typer.Option("--slice", metavar="COLUMN", help="Results for each value of this column; repeatable.")
]
ShowAll = Annotated[bool, typer.Option("--all", help="Show everything: every score, metric, comparison and explanation.")]
