"""Read and write calibration files, and refuse a calibration that was fitted to other scores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ragassay.jobs.output import errors
from ragassay.jobs.output.fingerprint import find_differences, find_setting
from ragassay.jobs.storage.folder import Folder, check_outside_output, make_file_folder, open_file_folder
from ragassay.jobs.storage.writable import check_writable
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.ensemble import NormalizationFit
from ragassay.pipeline.verdict.rule import Rule
from ragassay.schemas.calibration import Calibration


def read_calibration(uri: str) -> Calibration:
    """Read a calibration file.

    Args:
        uri: Path or URI of the file.

    Raises:
        ConfigError: The file can't be read.
    """
    folder, name = open_file_folder(uri)
    try:
        text = folder.read(name)
        if text is None:
            raise ConfigError(errors.NO_CALIBRATION, path=uri)
        return Calibration.from_json(text)
    except ValueError as error:
        raise ConfigError(errors.UNREADABLE_CALIBRATION, path=uri, reason=error) from error


def load_calibration(uri: str, fingerprint: dict[str, Any], member_values: dict[str, str]) -> Calibration:
    """Read a calibration file for given scores.

    Args:
        uri: Path or URI of the file.
        fingerprint: Fingerprint of the scores. The calibration must have been fitted under the same one.
        member_values: Member -> kind of its value that the job uses.

    Raises:
        ConfigError: The file can't be read, or the calibration was fitted to other scores.
    """
    calibration = read_calibration(uri)
    stored, current = (
        {part: value for part, value in known.items() if part != "languages"}  # no score depends on it
        for known in (calibration.fingerprint, fingerprint)
    )
    check_calibration_scores(uri, calibration, find_differences(stored, current), member_values)
    return calibration


def check_calibration_scores(
    uri: str, calibration: Calibration, differences: Iterable[tuple[str, Any, Any]], member_values: Mapping[str, str]
) -> None:
    """Refuse a calibration that was fitted to other scores.

    Args:
        uri: Path or URI of the file.
        calibration: The calibration.
        differences: Parts of the fingerprint that differ: name, value at calibration, current value.
        member_values: Member -> kind of its value that is used now.

    Raises:
        ConfigError: The calibration was fitted to other scores.
    """
    faults = [f"  {find_setting(part)}: was {then}, is {now}" for part, then, now in differences]
    members = {name: member.value for name, member in calibration.members.items()}
    if members != member_values:
        faults.append(f"  members: was {members}, is {member_values}")
    if faults:
        raise ConfigError(errors.OTHER_SCORES, path=uri, lines="\n".join(faults))


@dataclass(frozen=True)
class CalibrationTarget:
    """The file that a calibration is written to.

    Attributes:
        folder: Folder of the file.
        name: Name of the file in it.
    """

    folder: Folder
    name: str

    @property
    def address(self) -> str:
        """Return the address of the file, as it may be shown."""
        return self.folder.format_address(self.name)

    def read_existing(self) -> Calibration | None:
        """Read the existing calibration; None if the file does not exist.

        Raises:
            ConfigError: The file is not a calibration.
        """
        try:
            text = self.folder.read(self.name)
            return None if text is None else Calibration.from_json(text)
        except ValueError as error:
            raise ConfigError(errors.NOT_A_CALIBRATION, path=self.address) from error


def prepare_calibration_target(output: Folder, path: str | None) -> CalibrationTarget:
    """Check that a calibration can be written, before it is fitted.

    Args:
        output: Output folder that it is fitted to.
        path: Path or URI of the file; None selects calibration.json in the output folder.

    Raises:
        ConfigError: The file exists and is not a calibration.
        OutputError: The file is part of the output's data, or can't be written.
    """
    target = CalibrationTarget(*(open_file_folder(path) if path else (output, "calibration.json")))
    file = make_file_folder(target.folder, target.name)
    check_outside_output(output, file, target.address)
    check_writable(file, target.address)
    target.read_existing()
    return target


def write_calibration(calibration: Calibration, target: CalibrationTarget) -> str:
    """Write a calibration. An existing one is kept in the same folder, with its id in the name.

    Args:
        calibration: Calibration to write.
        target: File to write to.

    Returns:
        Address of the file.
    """
    replaced = target.read_existing()
    if replaced is not None:
        backup_name = f"{target.name.removesuffix('.json')}-{replaced.calibration_id}.json"
        target.folder.write(backup_name, replaced.to_json())
    target.folder.write(target.name, calibration.to_json())
    return target.address


def make_rule(calibration: Calibration) -> Rule:
    """Create the rule by which a calibration turns member values into scores."""
    fits = {name: NormalizationFit(m.mu, m.sigma, m.count, m.low) for name, m in calibration.members.items()}
    weights = {name: m.weight for name, m in calibration.members.items()}
    mean, positive = Mean(calibration.mean), PositivityPolicy(calibration.positive)
    return Rule(fits, mean, positive, calibration.epsilon, weights, calibration.sentence)
