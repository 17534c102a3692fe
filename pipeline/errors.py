"""Every error that RAGAssay raises on purpose.

RagassayError              exit code 1; its text names the thing and the way out, so no traceback is shown
├── ConfigError            the job file, or a value in it, is wrong
├── InputError             the logs can't be read as they stand: columns, types, files, ids
├── OutputError            the output folder is in use, foreign, or made under another fingerprint
│   ├── OutputInUse        another command writes into it
│   └── OutputRewritten    a partition was replaced while it was read, or waits for a run that broke off
├── ModelError             a model can't be found, loaded, or has no single-token yes or no
├── StageError             a stage of a plan reads or writes a column that does not fit the others
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


class OutputInUse(OutputError):
    """Another command writes into the output folder.

    Attributes:
        holder: Who, in words.
    """

    def __init__(self, message: str, holder: str = "") -> None:
        """Keep both, so that it survives pickling."""
        super().__init__(message, holder)
        self.holder = holder

    def __str__(self) -> str:
        """The message alone."""
        return str(self.args[0])


class OutputRewritten(OutputError):
    """A partition of the output folder was replaced while it was read, or waits for a run that broke off.

    Attributes:
        output: The output folder.
        partition: Hive path of the partition; empty in an output without partitions.
    """

    def __init__(self, output: str, partition: str) -> None:
        """Name the partition."""
        super().__init__(output, partition)
        self.output, self.partition = output, partition

    def __str__(self) -> str:
        """What is wrong, where, and what to do."""
        where = f"partition {self.partition!r} of output {self.output}" if self.partition else f"output {self.output}"
        return (
            f"{where} is being rewritten: run the command again when the run that writes it has ended; if that run broke off, "
            f"`ragassay finalize {self.output}`, or the same run again, completes it"
        )


class ModelError(RagassayError):
    """A model can't be found or used."""


class StageError(RagassayError):
    """A stage of a plan reads or writes a column that does not fit the others."""


class FitError(RagassayError):
    """Mean and deviation can't be fitted."""


class PublishError(RagassayError):
    """Verdicts can't be sent to a tool, or it would not take some."""


class RowsError(RagassayError):
    """This program failed on more rows than the job allows."""


class BalanceError(RagassayError):
    """Rows in are not rows out."""
