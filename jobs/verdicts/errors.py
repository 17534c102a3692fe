"""Error messages of this folder."""

from ragassay.pipeline.errors import Message

TOO_MANY_ERRORS = Message(
    "rows.too-many-errors",
    "{errors:,} of the {rows:,} rows that were last written to {output} ended with status error, more than "
    "runtime.max_error_share {maximum:g} allows. Nothing is lost; the column `error` shows where each error occurred. "
    "Report the errors. Then run a version that fixes them with another OUTPUT (if all of them occurred in finalize, "
    "`ragassay finalize` with that version is enough). A larger runtime.max_error_share accepts them",
)
NO_SCORED_ROWS = Message(
    "fit.no-scored-rows",
    "output {output} contains no scored rows: run `ragassay score INPUT {output}` first",
)
UNREADABLE_STATISTICS = Message("fit.unreadable-statistics", "frozen statistics {path}: {reason}")
WRONG_STATISTICS = Message(
    "fit.wrong-statistics",
    "frozen statistics {path} must contain mu, sigma, count and low of {members}, or be a manifest.json: {type} {reason}",
)
FROZEN_SIGMA = Message(
    "fit.frozen-sigma",
    "frozen statistics {path}: SLM {member!r} has mu {mu} and sigma {sigma}; sigma must be > 0",
)
FROZEN_VALUE = Message("fit.frozen-value", "frozen statistics {path}: the value of SLM {member!r} is {value}, not {expected}")
MORE_LANGUAGES = Message(
    "fit.more-languages",
    "splitting.languages: {languages}, but {rows} rows of the output were not scored because the languages were {before}. "
    "Score the logs into another OUTPUT, or undo the setting",
)
MEAN_OF_NO_POSITIVE_SCORES = Message(
    "config.mean-of-no-positive-scores",
    "verdict.rule: both flags sentences by a fraction of the threshold, which needs positive scores. The {mean} mean under "
    "positive: {positive} may be negative. Set positive to cdf, clip or shift, or verdict.rule to aggregate",
)
AGGREGATE = Message("config.aggregate", "verdict.aggregate: {reason}")
NOTHING_TO_JUDGE_BY = Message(
    "fit.nothing-to-judge-by",
    "a single answer has no moments and no quantile, and the bundled ones apply only to the default members with the default "
    "normalize, threshold and weights. Set in_ensemble: false for additional detectors, name an output of this job "
    "(--history OUTPUT) or a calibration (--calibration FILE), or set both verdict.normalize.source: frozen and "
    "verdict.threshold.value",
)
PARTITION_UNBALANCED = Message(
    "rows.partition-unbalanced",
    "partition {partition!r}: {rows_in} rows in, {rows_out} rows in scored/",
)
OTHER_SCALE = Message(
    "config.threshold-of-other-scores",
    "verdict.aggregate: the threshold of the {calibration} does not apply to scores made with {settings}. Set a threshold too, "
    "such as `verdict: {{threshold: {{quantile: 0.2}}}}`, omit {keys}, or set `verdict: {{calibration: {none}}}`",
)
NO_SCORED_ROW = Message(
    "output.no-scored-row",
    "no row of this output has a score: run `ragassay finalize OUTPUT`, or read `status` and `error` in scored/ to see why "
    "rows failed",
)
STALE_STATISTICS = Message(
    "output.old-statistics",
    "statistics of partition {partition!r} are missing or out of date: run `ragassay finalize` first",
)
