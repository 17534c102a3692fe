"""Error messages of the calibration."""

from ragassay.pipeline.errors import Message

UNKNOWN_TARGET = Message("calibrate.unknown-target", "target {target!r} is unknown: use one of {forms}")
TARGET_WITHOUT_CLASS = Message(
    "calibrate.target-without-class",
    "target {target!r} names no class: use {supported} (for responses that pass) or {flag} (for responses that are flagged)",
)
TARGET_OUT_OF_RANGE = Message("calibrate.target-out-of-range", "target {target!r}: the number must be between 0 and 1")
TARGET_NO_NUMBER = Message("calibrate.target-no-number", "target {target!r}: {number!r} is not a number")
