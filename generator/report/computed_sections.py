"""What is computed before anything runs: the model, its memory, blocks and capacity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from generator.capacity.capacity import EngineCapacity
from generator.capacity.view import (
    capacity_notes,
    kv_cache_notes,
    kv_cache_table,
    memory_notes,
    memory_table,
    requests_notes,
    requests_table,
)
from generator.model_summary.view import (
    architecture_rows,
    cache_rows,
    layouts_notes,
    layouts_table,
    weights_notes,
    weights_table,
)
from generator.report.content import Block, Facts, Paragraph, Section, table_block
from generator.report.inputs import ReportInputs
from generator.studies.view import study_notes, study_table


def model_section(inputs: ReportInputs, warnings: Iterable[str]) -> Section:
    """The architecture and what a rank of it weighs, under what warns of it."""
    summary = inputs.summary
    source = f"Computed from {inputs.model_file} by pdrecipe {inputs.version}."
    return Section(
        id="model",
        title="The model",
        blocks=(
            *(Paragraph(text=text, is_alert=True) for text in warnings),
            Facts(rows=tuple(architecture_rows(summary))),
            *_sentences(weights_notes(summary)),
            table_block("Weights of one rank", _unwrapped(weights_table(summary)), source=source),
            *_notes(layouts_notes(summary)),
            table_block("What each doubling of TP changes", layouts_table(summary), source=source),
        ),
    )


def memory_section(inputs: ReportInputs) -> Section:
    """The memory account of every engine and how its KV cache is cut."""
    engines = inputs.engines
    source = f"Computed from {inputs.spec_file} and {inputs.model_file}."
    return Section(
        id="memory",
        title="Memory and block sizes",
        blocks=(
            Paragraph(
                text=(
                    "Concurrency is what the KV cache holds, and the KV cache is what weights,"
                    " activations and graphs leave. Both follow from the flags of an engine."
                )
            ),
            table_block("Memory of one GPU, GiB", memory_table(engines), source=source),
            *_notes(memory_notes(engines)),
            *_notes(_origins_of_terms(engines)),
            Facts(rows=tuple(cache_rows(inputs.summary))),
            table_block("Blocks of the KV cache", kv_cache_table(engines), source=source),
            *_notes(kv_cache_notes()),
        ),
    )


def _origins_of_terms(engines: Iterable[EngineCapacity]) -> Iterator[str]:
    """Where the terms are from that do not follow from the spec and the model."""
    sources: dict[str, dict[str, None]] = {}
    for engine in engines:
        terms = engine.memory.terms
        for term in (terms.total, terms.cuda_context, *terms.spent.values()):
            if term.source:
                sources.setdefault(str(term.basis), {})[term.source] = None
    for basis, named in sources.items():
        yield f"{basis.capitalize()} terms are from: {'; '.join(named)}."


def capacity_section(inputs: ReportInputs) -> Section:
    """The requests that every engine holds, and the deployments they stand in."""
    engines = inputs.engines
    source = f"Computed from {inputs.spec_file} by pdrecipe {inputs.version}."
    return Section(
        id="capacity",
        title="Capacity",
        blocks=(
            table_block("Requests at once", requests_table(engines), source=source),
            *_notes(requests_notes(engines)),
            *_notes(capacity_notes(engines)),
            *_deployments_block(inputs, source),
            *_studies_blocks(inputs, source),
        ),
    )


def _deployments_block(inputs: ReportInputs, source: str) -> Iterator[Block]:
    """The deployments, where the spec has chosen any."""
    headers, rows = _deployments(inputs)
    if rows:
        caption = "Deployments of the spec: what the decode side holds"
        yield table_block(caption, (headers, rows), source=source)


def _studies_blocks(inputs: ReportInputs, source: str) -> Iterator[Block]:
    """The layouts that are measured alone, and those that cannot be, where the spec has any."""
    studies = inputs.estimate.studies
    if studies.planned or studies.refused:
        caption = "Phase studies of the spec: each layout alone"
        yield table_block(caption, study_table(studies), source=source)
        yield from _notes(study_notes(studies))


def _deployments(inputs: ReportInputs) -> tuple[list[str], list[list[str]]]:
    """Each deployment with the most it is asked to hold and what its decode workers hold."""
    rows = []
    for each in inputs.estimate.derivation.deployments:
        decode = inputs.estimate.capacities[each.decode.name]
        holds = float(decode.pool_requests)
        loads = each.spec.concurrencies
        if not loads:  # an accuracy run of a deployment that has a row
            continue
        gpus = each.spec.prefill.gpus + each.spec.decode.gpus
        rows.append(
            [
                f"{each.spec.prefill} + {each.spec.decode}",
                str(gpus),
                str(each.spec.speculative_tokens.decode),
                f"{min(loads)}-{max(loads)}" if len(loads) > 1 else str(*loads),
                f"{holds:,.0f}",
                "yes" if holds >= max(loads) else "no",
            ]
        )
    return ["deployment", "GPUs", "MTP", "concurrency", "decode holds", "fits"], rows


def _unwrapped(table: tuple[list[str], list[list[str]]]) -> tuple[list[str], list[list[str]]]:
    """A table whose last column was broken into lines for the terminal, as one row again."""
    headers, rows = table
    whole: list[list[str]] = []
    for row in rows:
        if whole and not any(row[:-1]):
            whole[-1][-1] += f" {row[-1]}"
        else:
            whole.append(list(row))
    return headers, whole


def _sentences(texts: Iterable[str]) -> list[Block]:
    return [Paragraph(text=text) for text in texts]


def _notes(texts: Iterable[str]) -> list[Block]:
    return [Paragraph(text=text, is_note=True) for text in texts]
