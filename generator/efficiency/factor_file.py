"""The file of efficiencies, which is the answer of ``calibrate --results --json`` too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from generator.documents import Document, read_document
from generator.efficiency.factors import Efficiency, Factors, MeasuredAcceptance
from generator.efficiency.measured_efficiency import EfficiencyCalibration
from generator.engine_version import release
from generator.errors import InvalidInput, Problem
from generator.validation import validate

VERSION = 1
_SCHEMA = "efficiency"


def efficiency_document(calibration: EfficiencyCalibration) -> dict[str, Any]:
    """The efficiencies with their residuals, and what could not be used."""
    return {
        "pdrecipe_efficiency": VERSION,
        "efficiencies": [_efficiency(each) for each in calibration.efficiencies],
        "acceptance": [msgspec.to_builtins(each) for each in calibration.acceptance],
        "points_used": calibration.used,
        "unused": [msgspec.to_builtins(each) for each in calibration.unused],
    }


def _efficiency(efficiency: Efficiency) -> dict[str, Any]:
    residuals = [
        msgspec.to_builtins(each) | {"relative": each.relative} for each in efficiency.residuals
    ]
    document: dict[str, Any] = msgspec.to_builtins(efficiency)
    return document | {"residuals": residuals}


def read_factors(path: Path) -> Factors:
    """What a file says; raises InvalidInput with every problem of it."""
    document = read_document(path)
    validate(document, _SCHEMA)
    entries = document.data["efficiencies"]
    if problems := list(_problems(document, entries)):
        raise InvalidInput(problems)
    accepted = document.data.get("acceptance", ())
    return Factors(
        efficiencies=tuple(msgspec.convert(entry, Efficiency) for entry in entries),
        acceptance=tuple(msgspec.convert(entry, MeasuredAcceptance) for entry in accepted),
    )


def _problems(document: Document, entries: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    """What no schema can say: an unreadable release, or two efficiencies of one phase."""
    seen: dict[tuple[Any, ...], int] = {}
    for index, entry in enumerate(entries):
        version = entry["engine_version"]
        try:
            release(version or "0.0")
        except InvalidInput as error:
            problem = error.problems[0]
            path = ("efficiencies", index, "engine_version")
            yield document.problem(path, problem.message, problem.hint)
        first = seen.setdefault((entry["gpu"], version, entry["phase"]), index)
        if first != index:
            message = f"is of the same GPU, release and phase as efficiencies[{first}]"
            yield document.problem(("efficiencies", index), message, "keep one of them")
