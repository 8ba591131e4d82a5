"""The ladders of a spec's phase studies as a table and as part of the capacity document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.capacity.inverse import RequestQuestion
from generator.capacity.view import Table, engine_document
from generator.spec.spec import StudySpec
from generator.studies.ladders import RefusedStudy, Studies, Study
from generator.units import format_count


def study_label(study: StudySpec) -> str:
    """Phase, layout and drafted tokens as in the other tables: ``D TEP8 mtp3``."""
    tokens = study.engine.speculative_tokens
    return f"{study.phase[0].upper()} {study.engine.pool.layout}{f' mtp{tokens}' if tokens else ''}"


def study_notes(studies: Studies) -> Iterator[str]:
    """What the columns of the table of studies mean."""
    lengths = dict.fromkeys(
        f"{study.capacity.at_workload.tokens} ({study.spec.phase})" for study in studies.planned
    )
    yield (
        f"Phase studies, each an aggregated engine sized for its last rung, with requests of"
        f" {' and '.join(lengths)} tokens. holds: as many of them the KV cache does."
    )
    yield (
        "A ladder goes on while the engine sized for the next rung starts, has a slot for each"
        " request (ranks x max-num-seqs) and holds as many; ended by: what the rung after the last"
        " one lacks."
    )


def study_table(studies: Studies) -> Table:
    """Each study's ladder, what its engine holds, and why it ends or is not there."""
    headers = ["study", "GPUs", "slots", "holds", "first", "last", "ended by"]
    rows = [_row(study) for study in studies.planned]
    rows += [[study_label(study.spec), f"refused: {study.reason}"] for study in studies.refused]
    return headers, rows


def _row(study: Study) -> list[str]:
    engine, rungs = study.capacity.engine, study.probe.spec.concurrencies
    return [
        study_label(study.spec),
        str(engine.pool.gpus),
        str(engine.pool.data_ranks * engine.resolved.max_num_seqs),
        format_count(float(study.capacity.pool_requests)),
        str(rungs[0]),
        str(rungs[-1]),
        study.end.limit if study.end else "",
    ]


def with_studies(
    document: dict[str, Any], studies: Studies, question: RequestQuestion
) -> dict[str, Any]:
    """A capacity document with the studies of its spec, where it has any."""
    if not studies.planned and not studies.refused:
        return document
    rows = [
        *(_planned_document(study, question) for study in studies.planned),
        *map(_refused_document, studies.refused),
    ]
    return {**document, "studies": rows}


def _planned_document(study: Study, question: RequestQuestion) -> dict[str, Any]:
    return {
        **_identity(study.spec),
        "concurrencies": list(study.probe.spec.concurrencies),
        "ladder_end": study.end.message if study.end else "",
        "engine": engine_document(study.capacity, question),
    }


def _refused_document(study: RefusedStudy) -> dict[str, Any]:
    return {
        **_identity(study.spec),
        "refused": [
            {"message": problem.message, "hint": problem.hint} for problem in study.problems
        ],
    }


def _identity(study: StudySpec) -> dict[str, Any]:
    return {
        "file": study.engine.file,
        "phase": study.phase,
        "layout": str(study.engine.pool.layout),
        "num_speculative_tokens": study.engine.speculative_tokens,
    }
