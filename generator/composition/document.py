"""A composition as a versioned JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from generator.composition.compose import Composition
from generator.composition.explanation import choice_reasons
from generator.composition.grouping import ComposedGroup
from generator.composition.phase_frontier import Lead
from generator.composition.phase_points import EngineKind
from generator.composition.proposals import Candidate, Choice

JSON_VERSION = 1


def composition_document(composition: Composition) -> dict[str, Any]:
    """The JSON answer, valid against schemas/compose.schema.json."""
    saving = composition.saving
    return {
        "version": JSON_VERSION,
        "origins": list(composition.phases.origins),
        "notes": list(composition.phases.notes),
        "margin": composition.margin,
        "leads": {
            "prefill": _leads(composition.prefill_leads),
            "decode": _leads(composition.decode_leads),
        },
        "choices": [_choice(choice) for choice in composition.choices],
        "groups": [_group(group, saving.requests_per_concurrency) for group in composition.groups],
        "saving": {**asdict(saving), "share_saved": saving.share_saved},
        "comparisons": [
            {**asdict(each), "reasons": list(each.reasons)} for each in composition.comparisons
        ],
    }


def _kind(kind: EngineKind) -> dict[str, Any]:
    return {"layout": kind.name, "num_speculative_tokens": kind.num_speculative_tokens}


def _leads(leads: Sequence[Lead]) -> list[dict[str, Any]]:
    return [{**_kind(lead.kind), "lowest": lead.lowest, "highest": lead.highest} for lead in leads]


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "concurrency": choice.concurrency,
        "chosen": _candidate(choice.chosen) if choice.chosen else None,
        "reasons": list(choice_reasons(choice)),
        "others": [_candidate(other) for other in choice.others],
        "rejected": [
            {**_kind(each.decode.kind), "reason": each.reason} for each in choice.rejected
        ],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    match, capacity = candidate.match, candidate.capacity
    return {
        "prefill": {"layout": candidate.prefill.name, "workers": match.workers},
        "decode": {**_kind(candidate.decode.kind), "workers": 1},
        "gpus": candidate.gpus,
        "prefill_requests_per_s_per_worker": match.prefill.requests_per_s,
        "prefill_requests_per_s_supplied": match.supplied,
        "prefill_utilization": match.utilization,
        "decode_requests_per_s": match.needed,
        "total_tokens_per_s_per_gpu": candidate.tokens_per_s_per_gpu,
        "tokens_per_s_per_user": candidate.tokens_per_s_per_user,
        "requests_held": capacity.held,
        "block_tokens": capacity.block_tokens,
        "own_block_tokens": capacity.own_block_tokens,
    }


def _group(group: ComposedGroup, requests_per_concurrency: int) -> dict[str, Any]:
    return {
        "name": group.name,
        "decode": _kind(group.decode),
        "time_limit": group.time_limit(requests_per_concurrency),
        "deployments": [
            {
                "file": deployment.file,
                "prefill": deployment.prefill,
                "concurrencies": list(deployment.concurrencies),
            }
            for deployment in group.deployments
        ],
    }
