"""Calibration files: write one, read one, and refuse it for scores that it was not fitted to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ragassay.jobs.output import errors
from ragassay.jobs.output.fingerprint import differences, setting_of
from ragassay.jobs.storage.folder import Folder, file_of, open_file, refuse_inside
from ragassay.jobs.storage.writable import check_writable
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.verdict.aggregate import Mean, Positive
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.pipeline.verdict.rule import Rule
from ragassay.schemas.calibration import Calibration


def read_calibration(uri: str) -> Calibration:
    """Read a calibration.

    Args:
        uri: Path or URI of the file.

    Raises:
        ConfigError: It can't be read.
    """
    folder, name = open_file(uri)
    try:
        text = folder.read(name)
        if text is None:
            raise ConfigError(errors.NO_CALIBRATION, path=uri)
        return Calibration.from_json(text)
    except ValueError as error:
        raise ConfigError(errors.UNREADABLE_CALIBRATION, path=uri, reason=error) from error


def load_calibration(uri: str, fingerprint: dict[str, Any], values: dict[str, str]) -> Calibration:
    """Read a calibration for scores.

    Args:
        uri: Path or URI of the file.
        fingerprint: Of the scores; it must be the one that the calibration was fitted under.
        values: Member -> which of its numbers the job uses.

    Raises:
        ConfigError: It can't be read, or it belongs to other scores.
    """
    calibration = read_calibration(uri)
    then, now = (
        {part: value for part, value in known.items() if part != "languages"}  # no score depends on them
        for known in (calibration.fingerprint, fingerprint)
    )
    refuse_other_scores(uri, calibration, differences(then, now), values)
    return calibration


def refuse_other_scores(
    uri: str, calibration: Calibration, found: Iterable[tuple[str, Any, Any]], values: Mapping[str, str]
) -> None:
    """Refuse a calibration for scores that it was not fitted to.

    Args:
        uri: Where it was read from.
        calibration: The calibration.
        found: What the scores depend on and is not as it was: name, value then, value now.
        values: Member -> which of its numbers is used now.

    Raises:
        ConfigError: It belongs to other scores.
    """
    faults = [f"  {setting_of(part)}: {then} then, {now} now" for part, then, now in found]
    members = {name: member.value for name, member in calibration.members.items()}
    if members != values:
        faults.append(f"  members: {members} then, {values} now")
    if faults:
        raise ConfigError(errors.OTHER_SCORES, path=uri, lines="\n".join(faults))


@dataclass(frozen=True)
class CalibrationTarget:
    """Where a calibration will be written.

    Attributes:
        folder: The folder.
        name: The file's name in it.
    """

    folder: Folder
    name: str

    @property
    def address(self) -> str:
        """Where the file is, as it may be shown."""
        return self.folder.format_address(self.name)

    def standing(self) -> Calibration | None:
        """The calibration that stands there; None where there is no file.

        Raises:
            ConfigError: Something else stands there.
        """
        try:
            text = self.folder.read(self.name)
            return None if text is None else Calibration.from_json(text)
        except ValueError as error:
            raise ConfigError(errors.NOT_A_CALIBRATION, path=self.address) from error


def calibration_target(output: Folder, to: str | None) -> CalibrationTarget:
    """Check where a calibration is to be written, before it is fitted.

    Args:
        output: The output folder that it will be fitted to.
        to: Path or URI of the file; None is calibration.json in the output folder.

    Raises:
        ConfigError: Something that is no calibration stands there.
        OutputError: It lies among the output's own data, or can't be written.
    """
    target = CalibrationTarget(*(open_file(to) if to else (output, "calibration.json")))
    file = file_of(target.folder, target.name)
    refuse_inside(output, file, target.address)
    check_writable(file, target.address)
    target.standing()
    return target


def write_calibration(calibration: Calibration, target: CalibrationTarget) -> str:
    """Write a calibration; one that stands in its place is kept beside it, under its id.

    Args:
        calibration: What to write.
        target: Where.

    Returns:
        Where it was written.
    """
    before = target.standing()
    if before is not None:
        kept = f"{target.name.removesuffix('.json')}-{before.calibration_id}.json"
        target.folder.write(kept, before.to_json())
    target.folder.write(target.name, calibration.to_json())
    return target.address


def rule_of(calibration: Calibration) -> Rule:
    """How the calibration turns values into scores."""
    fits = {name: Fit(m.mu, m.sigma, m.count, m.low) for name, m in calibration.members.items()}
    weights = {name: m.weight for name, m in calibration.members.items()}
    mean, positive = Mean(calibration.mean), Positive(calibration.positive)
    return Rule(fits, mean, positive, calibration.epsilon, weights, calibration.sentence)
