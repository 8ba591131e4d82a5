"""The calibration answer as a versioned JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from generator.calibration import Calibration, Compared, Finding, LoggedAccount
from generator.startup_log import GraphGroup, Process, RankReadings, Reading

JSON_VERSION = 1

_READINGS = tuple(field.name for field in fields(RankReadings) if field.name != "process")


def calibration_document(calibrations: Sequence[Calibration]) -> dict[str, Any]:
    """The JSON answer, valid against schemas/calibration.schema.json."""
    return {"version": JSON_VERSION, "logs": [_log_document(item) for item in calibrations]}


def _log_document(calibration: Calibration) -> dict[str, Any]:
    log, subject = calibration.log, calibration.subject
    return {
        "source": log.source,
        "lines": log.lines,
        "start_ups": log.start_ups,
        "engine": subject.engine.name if subject else None,
        "assumed": list(subject.assumed) if subject else [],
        "engine_version": _reading_document(log.engine_version),
        "model": _reading_document(log.model),
        "capture_sizes": _reading_document(log.capture_sizes),
        "settings": {flag: _reading_document(reading) for flag, reading in log.settings.items()},
        "readings": {
            name: [
                {"process": process.tag, **_value_document(reading)}
                for process, reading in log.readings(name)
            ]
            for name in _READINGS
        },
        "accounts": [_account_document(account) for account in calibration.accounts],
        "binding_process": calibration.account.process.tag if calibration.account else None,
        "kv_cache_size_means": calibration.meaning.value if calibration.meaning else None,
        "blocks": [
            {"process": blocks.process.tag, "counts": list(blocks.counts)}
            for blocks in calibration.blocks
        ],
        "requests": [
            {
                "request_tokens": requests.tokens,
                "blocks_per_request": requests.blocks_per_request,
                "requests_per_rank": float(requests.per_rank),
                "requests_per_endpoint": float(requests.per_endpoint),
            }
            for requests in calibration.requests
        ],
        "compared": [_compared_document(item) for item in calibration.compared],
        "findings": [_finding_document(finding) for finding in calibration.findings],
    }


def _reading_document(reading: Reading[Any] | None) -> dict[str, Any] | None:
    return None if reading is None else _value_document(reading)


def _value_document(reading: Reading[Any]) -> dict[str, Any]:
    value = reading.value
    if isinstance(value, tuple):
        value = [
            {"kind": item.kind, "graphs": item.graphs, "largest_tokens": item.largest_tokens}
            if isinstance(item, GraphGroup)
            else item
            for item in value
        ]
    return {"value": value, "line": reading.line}


def _account_document(account: LoggedAccount) -> dict[str, Any]:
    figures = {field.name: getattr(account, field.name) for field in fields(account)}
    return {
        "process": account.process.tag,
        **{
            f"{name}_bytes": figure and {"value": figure.size_bytes, "places": list(figure.places)}
            for name, figure in figures.items()
            if not isinstance(figure, Process)
        },
        "gap_bytes": account.gap_bytes,
    }


def _compared_document(item: Compared) -> dict[str, Any]:
    return {
        "name": item.name,
        "unit": item.unit.value,
        "logged": item.logged,
        "predicted": item.predicted,
        "basis": item.basis.value,
        "uncertainty": item.uncertainty,
        "agrees": item.agrees,
        "note": item.note,
        "places": list(item.places),
    }


def _finding_document(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "is_warning": finding.is_warning,
        "message": finding.message,
        "places": list(finding.places),
    }
