"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

TOO_MANY_ERRORS = Message(
    "rows.too-many-errors",
    "{errors:,} of the {rows:,} rows that were last written to {output} ended with status error, more than "
    "runtime.max_error_share {most:g} allows. Nothing is lost; the column `error` names the place of each error. Report the "
    "errors; then run a version that fixes them into another OUTPUT (if all of them are of finalize, `ragassay finalize` with "
    "that version is enough). A larger runtime.max_error_share accepts such runs",
)
NO_SCORED_ROWS = Message(
    "fit.no-scored-rows",
    "output {output} holds no scored rows: run `ragassay score INPUT {output}` first",
)
UNREADABLE_STATISTICS = Message("fit.unreadable-statistics", "frozen statistics {path}: {reason}")
WRONG_STATISTICS = Message(
    "fit.wrong-statistics",
    "frozen statistics {path} must hold mu, sigma, count and low of {members}, or be a manifest.json: {type} {reason}",
)
FROZEN_SIGMA = Message(
    "fit.frozen-sigma",
    "frozen statistics {path}: SLM {member!r} has mu {mu} and sigma {sigma}; sigma must be > 0",
)
FROZEN_VALUE = Message("fit.frozen-value", "frozen statistics {path}: those of SLM {member!r} are of {value}, not {wanted}")
MORE_LANGUAGES = Message(
    "fit.more-languages",
    "splitting.languages: {languages}, but {rows} rows of the output were not scored, as the languages were {before}: score "
    "the logs into another OUTPUT, or take the setting back",
)
MEAN_OF_NO_POSITIVE_SCORES = Message(
    "config.mean-of-no-positive-scores",
    "verdict.rule: both flags sentences by a fraction of the threshold, which needs positive scores, and the {mean} mean of "
    "scores under positive: {positive} has none: make positive cdf, clip or shift, or set verdict.rule to aggregate",
)
AGGREGATE = Message("config.aggregate", "verdict.aggregate: {reason}")
NOTHING_TO_JUDGE_BY = Message(
    "fit.nothing-to-judge-by",
    "one answer has no moments or quantile of its own, and the bundled ones are of the default members alone, under a job "
    "that leaves normalize, threshold and weights as they are: name an output of this job (--like OUTPUT), a calibration "
    "(--calibration FILE), or set both verdict.normalize.source: frozen and verdict.threshold.value",
)
PARTITION_UNBALANCED = Message(
    "rows.partition-unbalanced",
    "partition {partition!r}: {rows_in} rows in, {rows_out} rows in scored/",
)
OTHER_SCALE = Message(
    "config.threshold-of-other-scores",
    "verdict.aggregate: the threshold of the {calibration} is not for scores made with {settings}: give a threshold too, such "
    "as `verdict: {{threshold: {{quantile: 0.2}}}}`, leave {keys} out, or write `verdict: {{calibration: {none}}}`",
)
