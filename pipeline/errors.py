"""Every error that RAGAssay raises on purpose.

RagassayError              exit code 1; its text names the thing and the way out, so no traceback is shown
├── ConfigError            the job file, or a value in it, is wrong
├── InputError             the logs can't be read as they stand: columns, types, files, ids
├── OutputError            the output folder is in use, foreign, or made under another fingerprint
├── ModelError             a model can't be found, loaded, or has no single-token yes or no
├── FitError               mu and sigma can't be fitted (no scores, or sigma = 0)
├── PublishError           verdicts can't be sent to a tool, or it would not take some
├── RowsError              this program failed on more rows than the job allows; all is written, and says which
└── BalanceError           rows in are not rows out: never expected, always fatal
"""


class RagassayError(Exception):
    """Root of the tree. Holds one message, so that it survives pickling between processes."""


class ConfigError(RagassayError):
    """The job file, or a value in it, is wrong."""


class InputError(RagassayError):
    """The logs can't be read as they stand."""


class OutputError(RagassayError):
    """The output folder can't be used as it stands."""


class ModelError(RagassayError):
    """A model can't be found or used."""


class FitError(RagassayError):
    """Mean and deviation can't be fitted."""


class PublishError(RagassayError):
    """Verdicts can't be sent to a tool, or it would not take some."""


class RowsError(RagassayError):
    """This program failed on more rows than the job allows."""


class BalanceError(RagassayError):
    """Rows in are not rows out."""
