"""From a start-up log to what it implies: account, blocks, comparison, findings, profile."""

from generator.calibration.account import Figure, LoggedAccount
from generator.calibration.blocks import LoggedBlocks, TokensMeaning
from generator.calibration.comparison import Compared, Unit
from generator.calibration.findings import Finding
from generator.calibration.profile import (
    ProfileUpdate,
    extend_profile_file,
    measured_profile,
    write_profile_file,
)
from generator.calibration.result import Calibration, LoggedRequests, calibration_of
from generator.calibration.subject import (
    EngineDescription,
    SpecEngines,
    Subject,
    subject_of_description,
)

__all__ = [
    "Calibration",
    "Compared",
    "EngineDescription",
    "Figure",
    "Finding",
    "LoggedAccount",
    "LoggedBlocks",
    "LoggedRequests",
    "ProfileUpdate",
    "SpecEngines",
    "Subject",
    "TokensMeaning",
    "Unit",
    "calibration_of",
    "extend_profile_file",
    "measured_profile",
    "subject_of_description",
    "write_profile_file",
]
