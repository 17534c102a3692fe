"""The smaller sections of a job file."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ragassay.jobs.display.address import server_of
from ragassay.pipeline.verdict.aggregate import NEED_POSITIVE, Mean, Positive


class Section(BaseModel):
    """A part of a job file: nothing in it is unknown, and nothing changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Columns(Section):
    """Names of our columns in the logs.

    Attributes:
        question: Column of the user's question; strings.
        context: Column of the retrieved context: a string, a list of strings (passages) or of structs, or either as JSON.
        response: Column of the answer; strings.
        messages: Column of a conversation, in place of those three: lists of structs with role and content, or JSON.
        passage_roles: Which of its turns hold passages: those of the first of these roles that has any.
        row_id: Column of the row's id; used if it is there. None makes ids from file and row number.
    """

    question: str = "question"
    context: str = "context"
    response: str = "response"
    messages: str | None = None
    passage_roles: tuple[str, ...] = Field(("tool", "system"), min_length=1)
    row_id: str | None = "row_id"

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that rows are made of, ids aside."""
        return (self.question, self.context, self.response) if self.messages is None else (self.messages,)

    @model_validator(mode="after")
    def _messages_or_columns(self) -> "Columns":
        defaults = {name: type(self).model_fields[name].default for name in ("question", "context", "response")}
        also = sorted(name for name, default in defaults.items() if getattr(self, name) != default)
        if self.messages is not None and also:
            raise PydanticCustomError(
                "config.messages-and-columns",
                "messages holds question, context and response: leave {columns} out, or messages",
                {"columns": ", ".join(also)},
            )
        if self.messages is None and self.passage_roles != type(self).model_fields["passage_roles"].default:
            raise PydanticCustomError(
                "config.roles-without-messages",
                "passage_roles is of a conversation: name its column in messages, or leave passage_roles out",
            )
        return self

    @model_validator(mode="after")
    def _differ(self) -> "Columns":
        names = [n for n in (*self.read, self.row_id) if n is not None]
        if len(set(names)) != len(names):
            raise PydanticCustomError("config.column-twice", "one column is named twice: {columns}", {"columns": names})
        return self


class Input(Section):
    """What INPUT is, where it is more than files with a row a response.

    Attributes:
        preset: INPUT is an export of traces by this tool; None for logs.
        hold_days: A trace that has not ended, or has no response, is taken as it is when there is data so much newer.
        version: Of a table, the version that is read (Delta, Lance) or the id of the snapshot (Iceberg); None is the latest.
        since: Version or snapshot after which rows came in that are read; None goes on behind what OUTPUT holds, and reads all
            rows where it holds nothing of the table.
        catalog: Of Iceberg: properties of the catalog, beside pyiceberg's own configuration.
    """

    preset: Literal["langfuse", "langsmith", "phoenix", "mlflow", "otel"] | None = None
    hold_days: float = Field(2, ge=0)
    version: int | None = Field(None, ge=0)
    since: int | None = Field(None, ge=0)
    catalog: dict[str, str] = Field(default_factory=dict)

    @property
    def of_tables(self) -> list[str]:
        """Settings that only a table has, of those given."""
        return [name for name in ("version", "since", "catalog") if getattr(self, name) not in (None, {})]


class OpenLineage(Section):
    """The OpenLineage server that runs are told to.

    Attributes:
        url: Its address; None takes OPENLINEAGE_URL, and tells nobody where that is not set either.
        namespace: Of the job.
        job: Its name, before `.run`, `.score`, `.finalize` or `.escalate`; None is `ragassay.` and the last name of OUTPUT.
    """

    url: str | None = None
    namespace: str = "ragassay"
    job: str | None = None

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url:
            server_of(url)
        return url


class Splitter(Section):
    """How responses are split: spaCy's rules (`sentencizer`), or any installed spaCy pipeline by name.

    Attributes:
        name: sentencizer, or an installed pipeline.
        language: Language of the rules, and of the detectors' stop words and stems.
        column: Column of the logs with each row's language, in the place of `language`: de, de-DE, German; what is unknown or
            null goes by the rules for many languages (xx). None has one language for all rows.
    """

    name: str = "sentencizer"
    language: str = "en"
    column: str | None = None

    @model_validator(mode="after")
    def _column_goes_with_rules(self) -> "Splitter":
        if self.column is not None and self.name != "sentencizer":
            raise PydanticCustomError(
                "config.pipeline-language",
                "a pipeline such as {pipeline} has one language: leave out column, or name",
                {"pipeline": self.name},
            )
        return self


class DropText(Section):
    """No text of users in OUTPUT.

    Attributes:
        keep: Columns of text that are carried along all the same, such as a tenant, or `passage_ids`. Numbers, times and hive
            keys always are.
    """

    keep: tuple[str, ...] = ()


class Normalize(Section):
    """Where mu and sigma come from.

    Attributes:
        source: run (the partitions being finalised), history (those and the ones before them, see `History`), or frozen. None
            takes the calibration's mu and sigma; without a calibration, those of the run.
        file: For frozen: a JSON file {member: {mu, sigma, count, low}}, or the manifest.json of an earlier run.
    """

    source: Literal["run", "history", "frozen"] | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _file_goes_with_frozen(self) -> "Normalize":
        if (self.source == "frozen") != (self.file is not None):
            raise PydanticCustomError("config.frozen-file", "file goes with source: frozen, and frozen needs it")
        return self


DEFAULT_MEAN, DEFAULT_POSITIVE, DEFAULT_EPSILON, DEFAULT_QUANTILE = Mean.HARMONIC, Positive.CDF, 0.01, 0.2
DEFAULT_SENTENCE = 0.5
"""Parts of the verdicts that neither a calibration nor the job file gives."""


class Aggregate(Section):
    """How sentence scores become a response's score: a mean, after a positivity policy.

    None takes a calibration's; without a calibration, the defaults above.
    """

    mean: Mean | None = None
    positive: Positive | None = None
    epsilon: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _positive_where_needed(self) -> "Aggregate":
        check_positive(self.mean or DEFAULT_MEAN, self.positive)
        return self


def check_positive(mean: Mean, positive: Positive | None) -> None:
    """Refuse a mean of scores that no policy makes positive.

    Args:
        mean: How sentence scores become a response's.
        positive: The policy; None is not known yet.

    Raises:
        ValueError: The mean needs positive scores.
    """
    if mean in NEED_POSITIVE and positive is Positive.NONE:
        raise PydanticCustomError(
            "config.positive-scores",
            "the {mean} mean needs positive scores: positive must be clip, cdf or shift",
            {"mean": mean.value},
        )


class Threshold(Section):
    """tau: a value, or the quantile of the response scores of the run, or of the run and its history.

    Without either it is the calibration's; without a calibration, the quantile DEFAULT_QUANTILE.

    Attributes:
        sentence: Threshold of a sentence, as a fraction of the response's: a sentence at or below it is flagged, and its
            response is hallucinated. None takes the calibration's; without a calibration, DEFAULT_SENTENCE. Without effect
            under `rule: aggregate`.
        value: tau itself.
        quantile: Share of responses to flag, 0 to 1, instead of a value: of n responses round-down(quantile * n), ties aside.
        of: Which responses the quantile is taken of.
        measured_on: What a value was measured on; the summary and the manifest repeat it.
    """

    sentence: float | None = Field(None, gt=0, le=1)
    value: float | None = Field(None, allow_inf_nan=False)
    quantile: float | None = Field(None, ge=0, le=1)
    of: Literal["run", "history"] = "run"
    measured_on: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Threshold":
        if self.value is not None and self.quantile is not None:
            raise PydanticCustomError("config.value-and-quantile", "give either value or quantile")
        if self.of != "run" and self.quantile is None:
            raise PydanticCustomError(
                "config.of-without-quantile",
                "of: {of} says of which responses a quantile is taken: give quantile, or leave of out",
                {"of": self.of},
            )
        if self.measured_on is not None and self.value is None:
            raise PydanticCustomError(
                "config.measured-without-value",
                "measured_on says on what a value was measured: give value, or leave measured_on out",
            )
        return self

    @property
    def is_given(self) -> bool:
        """Whether the job file gives a threshold of its own."""
        return self.value is not None or self.quantile is not None


class History(Section):
    """What tonight is compared with, and fitted on where a setting says history.

    Attributes:
        partitions: How far it goes back: so many different values of the first hive key, such as days.
    """

    partitions: int = Field(30, ge=1)


class Drift(Section):
    """How far tonight may be from its history before it counts as drift.

    Attributes:
        psi: Population stability index of a member's sentence values; 0.25 is the usual mark of a shift.
        ks: Kolmogorov-Smirnov distance of the same, 0 to 1.
        label_mass: Change of an SLM's mean P(yes) + P(no).
        flagged: Change of the share of responses flagged.
        error_rate: Rise of the share of rows that can't be scored.
        sentences: Change of the sentences a response, as a share of the history's.
        min_sentences: With fewer sentences on either side nothing is called drift.
    """

    psi: float = Field(0.25, gt=0)
    ks: float = Field(0.2, gt=0, le=1)
    label_mass: float = Field(0.1, gt=0, le=1)
    flagged: float = Field(0.1, gt=0, le=1)
    error_rate: float = Field(0.02, gt=0, le=1)
    sentences: float = Field(0.25, gt=0)
    min_sentences: int = Field(100, ge=1)
