"""A log beside the package's measured start-up of the same engine, where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generator.calibration.account import LoggedAccount
from generator.calibration.subject import Subject
from generator.capacity.memory_terms import computed_weights, profile_key, usable_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDifferences:
    """The profile that other commands use for this engine, and what the log has more of each term.

    Terms that are NOT FOUND in the log are left out.
    """

    name: str
    log_less_profile_bytes: Mapping[str, int]


def profile_differences(
    subject: Subject, account: LoggedAccount | None
) -> ProfileDifferences | None:
    """The package's profile of exactly this engine; None where a setting had to be assumed."""
    if subject.assumed or account is None:
        return None
    options = subject.engine.options
    key = profile_key(
        subject.architecture, subject.gpu, options, subject.engine.resolved, subject.defaults
    )
    weights = computed_weights(subject.architecture, options, subject.defaults)
    profile = usable_profile(key, weights)
    if profile is None:
        return None
    terms = {
        "weights": (account.weights, profile.weights_bytes_per_rank),
        "CUDA context": (account.cuda_context, profile.cuda_context_bytes_per_rank),
        "non-torch": (account.non_torch, profile.non_torch_bytes_per_rank),
        "peak activation": (account.peak_activation, profile.peak_activation_bytes_per_rank),
        "graphs reserved": (account.graph_reserved, profile.graph_reserved_bytes_per_rank),
        "KV cache": (account.kv_cache, profile.kv_cache_bytes_per_rank),
    }
    return ProfileDifferences(
        name=profile.name,
        log_less_profile_bytes={
            term: figure.size_bytes - size for term, (figure, size) in terms.items() if figure
        },
    )
