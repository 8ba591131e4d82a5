"""A plan as the document of ``pdrecipe plan --json``."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from generator.efficiency.cited_view import cited_document
from generator.efficiency.plan_facts import CitedPoint
from generator.enumeration.rejection import Rejection, refused_by_reason
from generator.planning.candidate import Candidate
from generator.planning.plan import Plan
from generator.planning.proposed_spec import ValidDeployment
from generator.planning.references import Reference, RefusedReference

VERSION = 1


def plan_document(plan: Plan) -> dict[str, Any]:
    """The JSON answer, valid against schemas/plan.schema.json; infinite limits are null."""
    subject, search, cost = plan.subject, plan.search, plan.cost
    return {
        "version": VERSION,
        "model": subject.architecture.name,
        "gpu": subject.gpu.name,
        "nodes": subject.nodes,
        "gpus_per_node": subject.gpus_per_node,
        "isl": subject.workload.isl,
        "osl": subject.workload.osl,
        "limits": {
            "ttft_s": _finite(search.limits.ttft_s),
            "tpot_s": _finite(search.limits.tpot_s),
        },
        "acceptance_rate": plan.costs.acceptance_rate,
        "efficiencies": {
            phase: {
                "factor": getattr(plan.costs, phase).factor,
                "fixed_s_per_step": getattr(plan.costs, phase).fixed_s_per_step,
                "points": getattr(plan.costs, phase).points,
                "source": getattr(plan.costs, phase).source,
            }
            for phase in ("prefill", "decode")
        },
        "engines_considered": plan.engines.considered,
        "engines_legal": len(plan.engines.legal),
        "engines_refused": [
            {
                "reason": each.reason.value,
                "engines": each.engines,
                "nearest": rejection_document(each.nearest),
            }
            for each in refused_by_reason(plan.engines.rejections)
        ],
        "combinations": search.combinations,
        "evaluated": search.evaluated,
        "frontier": [candidate_document(each) for each in search.frontier],
        "proposed": [_proposed(each) for each in plan.proposed],
        "points": [
            {
                "predicted": candidate_document(each.predicted),
                "bound": candidate_document(each.bound),
                "measured": _measured(each.measured),
            }
            for each in plan.points
        ],
        "references": [_reference(each) for each in plan.references],
        "cost": {
            "proposed": asdict(cost.proposed),
            "product": asdict(cost.product),
            "phases": asdict(cost.phases),
            "requests_per_concurrency": cost.requests_per_concurrency,
        },
        "notes": list(plan.notes),
        "public_points": cited_document(plan.public),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def candidate_document(each: Candidate) -> dict[str, Any]:
    """A deployment with everything predicted of it."""
    return {
        "prefill": str(each.prefill),
        "decode": str(each.decode),
        **asdict(each.kind),
        "concurrency": each.concurrency,
        "gpus": each.gpus,
        "requests_per_s": each.requests_per_s,
        "ttft_s": each.ttft_s,
        "tpot_s": each.tpot_s,
        "prefill_load": each.prefill_load,
        "tokens_per_s_per_user": each.tokens_per_s_per_user,
        "total_tokens_per_s_per_gpu": each.total_tokens_per_s_per_gpu,
    }


def rejection_document(each: Rejection) -> dict[str, Any]:
    """A rejection with its numbers."""
    return {
        "legal": False,
        "layout": str(each.layout),
        "role": each.role,
        "speculative_tokens": each.speculative_tokens,
        "kv_cache_dtype": each.kv_cache_dtype,
        "reason": each.reason.value,
        "needed": each.needed,
        "available": each.available,
        "message": each.problem.message,
    }


def _proposed(each: ValidDeployment) -> dict[str, Any]:
    return {
        "file": each.proposed.file,
        "concurrencies": list(each.proposed.concurrencies),
        "decode_requests": float(each.decode.pool_requests),
        "decode_block_tokens": each.decode.engine.kv_cache.block_tokens,
        "warnings": each.warnings,
    }


def _reference(each: Reference | RefusedReference) -> dict[str, Any]:
    if isinstance(each, RefusedReference):
        return {"file": each.file, "refused": each.reason}
    return {
        "file": each.file,
        "held_requests": each.held_requests,
        "predicted": candidate_document(each.predicted),
        "bound": candidate_document(each.bound),
        "beaten_by": candidate_document(each.beaten_by) if each.beaten_by else None,
        "measured": _measured(each.measured),
    }


def _measured(point: CitedPoint | None) -> dict[str, Any] | None:
    if point is None:
        return None
    return {
        "tpot_ms": point.tpot_ms,
        "tokens_per_s_per_user": point.tokens_per_s_per_user,
        "total_tokens_per_s_per_gpu": point.total_tokens_per_s_per_gpu,
        "source": point.source,
    }
