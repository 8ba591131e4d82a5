"""Both rooflines as text and as the document of ``pdrecipe roofline --json``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from generator.roofline.model_roofline import ModelRoofline
from generator.roofline.warm_decode import WarmDecode
from generator.units import format_gib

VERSION = 1
Rows = list[tuple[str, str]]


def warm_decode_rows(reader: WarmDecode) -> Rows:
    """The article's figures: memory first, then the two times and the ceiling."""
    limit = "memory" if reader.memory_ms >= reader.compute_ms else "compute"
    return [
        ("KV cache", f"{reader.cache_gb:.3f} GB"),
        ("required", f"{reader.required_gb:.3f} GB"),
        ("headroom", f"{reader.headroom_gb:.3f} GB of {reader.budget_gb:g} GB"),
        ("memory", f"{reader.memory_ms:.3f} ms"),
        ("compute", f"{reader.compute_ms:.3f} ms"),
        ("step", f"at least {reader.step_ms:.3f} ms, limited by {limit}"),
        ("ceiling", _ceiling(reader.tokens_per_s, "the budget")),
    ]


def warm_decode_document(reader: WarmDecode) -> dict[str, Any]:
    """The inputs and what follows from them; the ceiling is null where it is withheld."""
    return {
        "version": VERSION,
        "inputs": asdict(reader),
        "cache_gb": reader.cache_gb,
        "required_gb": reader.required_gb,
        "headroom_gb": reader.headroom_gb,
        "traffic_gb": reader.traffic_gb,
        "memory_ms": reader.memory_ms,
        "compute_ms": reader.compute_ms,
        "step_ms": reader.step_ms,
        "tokens_per_s": reader.tokens_per_s,
    }


def model_roofline_rows(roofline: ModelRoofline) -> Rows:
    """The same figures for one GPU of an engine."""
    bound = roofline.bound
    memory, compute, collectives = (
        float(each[0]) * 1000 for each in (bound.memory_s, bound.compute_s, bound.communication_s)
    )
    limit = "memory" if memory >= compute else "compute"
    load = roofline.load
    headroom = format_gib(roofline.headroom_bytes_per_rank)
    budget = format_gib(roofline.budget_bytes_per_rank)
    return [
        ("engine", _engine(roofline)),
        ("load", f"{load.sequences} sequences of {load.context_tokens} tokens"),
        ("weights", f"{format_gib(roofline.terms.weights.bytes_per_rank)} per GPU"),
        ("KV cache", f"{format_gib(roofline.kv_cache_bytes_per_rank)} per GPU"),
        ("required", f"{format_gib(roofline.required_bytes_per_rank)} per GPU"),
        ("headroom", f"{headroom} of {budget}, what the engine may use"),
        ("memory", f"{memory:.3f} ms"),
        ("compute", f"{compute:.3f} ms"),
        ("collectives", f"{collectives:.3f} ms"),
        ("step", f"at least {roofline.step_ms:.3f} ms, limited by {limit}"),
        ("tokens/step", f"{roofline.tokens_per_step:.2f} of a sequence"),
        ("ceiling", _ceiling(roofline.tokens_per_s, "a GPU")),
        *_prediction_rows(roofline),
    ]


def _prediction_rows(roofline: ModelRoofline) -> Iterator[tuple[str, str]]:
    if roofline.efficiency is None:
        return
    factors = roofline.efficiency.efficiency
    made_of = f"{factors.factor:.3f} x the bound + {factors.fixed_s_per_step * 1000:.3f} ms"
    yield "prediction", f"{roofline.predicted_step_ms:.3f} ms a step: {made_of}"
    yield "predicted", _ceiling(roofline.predicted_tokens_per_s, "a GPU")


def model_roofline_document(roofline: ModelRoofline) -> dict[str, Any]:
    """The same as a document; sizes in bytes of one GPU."""
    bound = roofline.bound
    return {
        "version": VERSION,
        "engine": {
            "layout": str(roofline.engine.pool.layout),
            "gpus": roofline.engine.pool.layout.ranks,
            "num_speculative_tokens": roofline.engine.options.num_speculative_tokens,
        },
        "load": asdict(roofline.load),
        "weights_bytes_per_rank": roofline.terms.weights.bytes_per_rank,
        "kv_cache_bytes_per_rank": roofline.kv_cache_bytes_per_rank,
        "required_bytes_per_rank": roofline.required_bytes_per_rank,
        "budget_bytes_per_rank": roofline.budget_bytes_per_rank,
        "headroom_bytes_per_rank": roofline.headroom_bytes_per_rank,
        "memory_ms": float(bound.memory_s[0]) * 1000,
        "compute_ms": float(bound.compute_s[0]) * 1000,
        "communication_ms": float(bound.communication_s[0]) * 1000,
        "step_ms": roofline.step_ms,
        "tokens_per_step": roofline.tokens_per_step,
        "tokens_per_s": roofline.tokens_per_s,
        "prediction": _prediction_document(roofline),
    }


def _prediction_document(roofline: ModelRoofline) -> dict[str, Any] | None:
    if roofline.efficiency is None:
        return None
    factors = roofline.efficiency.efficiency
    return {
        "factor": factors.factor,
        "fixed_ms_per_step": factors.fixed_s_per_step * 1000,
        "step_ms": roofline.predicted_step_ms,
        "tokens_per_s": roofline.predicted_tokens_per_s,
        "note": roofline.efficiency.note,
    }


def warm_decode_notes() -> Iterator[str]:
    """What the reader's figures are and are not."""
    yield (
        "A bound of one warm decode step of a dense model on one GPU, not a measurement:"
        " decimal GB, entered rates, ideal overlap."
    )


def model_roofline_notes(roofline: ModelRoofline, collective_latency_us: float) -> Iterator[str]:
    """What the bound assumes."""
    yield (
        "A bound, not a measurement: every byte and operation once at the GPU's published dense"
        " peaks, tokens routed evenly over experts, sequences spread evenly over ranks."
    )
    yield f"Each collective is taken to need at least {collective_latency_us:g} us (assumed)."
    sequences, defaults = roofline.load.sequences, roofline.defaults
    if sequences > roofline.slots:
        of = f"{roofline.engine.resolved.max_num_seqs:,} on each data rank"
        yield (
            f"{sequences:,} sequences do not run at once: max-num-seqs lets {roofline.slots:,},"
            f" {of}."
        )
    if defaults.version and not defaults.is_exact_version:
        yield (
            f"Rules of vLLM {defaults.resolved_version}, the newest whose source was read that is"
            f" not above {defaults.version}."
        )
    if roofline.engine.options.num_speculative_tokens:
        share = roofline.load.acceptance_rate
        yield f"Of drafted tokens {share:.0%} are accepted, an input: all of them is the ceiling."
    if roofline.efficiency is not None:
        factors = roofline.efficiency.efficiency
        notes = filter(None, (roofline.efficiency.note, factors.note))
        yield "; ".join((f"The prediction's factors are of {factors.source}", *notes)) + "."


def _engine(roofline: ModelRoofline) -> str:
    pool, drafts = roofline.engine.pool, roofline.engine.options.num_speculative_tokens
    return f"{pool.layout}{f' MTP {drafts}' if drafts else ''} on {pool.layout.ranks} GPUs"


def _ceiling(tokens_per_s: float | None, what: str) -> str:
    if tokens_per_s is None:
        return f"withheld: {what} does not hold what is required"
    return f"{tokens_per_s:,.2f} tokens/s"
