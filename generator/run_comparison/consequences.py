"""Factors that differ only because another one does: they are no second change."""

from __future__ import annotations

from collections.abc import Collection, Mapping

CONFIGURATION = "configuration"
_SEQUENCES = "max-num-seqs"
_PAIRED_ROLES = ("prefill", "decode")

_Factors = Mapping[str, str]


def is_consequence(key: str, before: _Factors, after: _Factors, differing: Collection[str]) -> bool:
    """Whether a factor differs between two runs as another of those differing makes it differ.

    A capture size that is max-num-seqs x (1 + drafted tokens) on both sides follows either; so does
    a max-num-batched-tokens that is as far above that on both. A block size that prefill and decode
    share, or both leave to the engine, follows the layouts: transfer needs one size.
    """
    role, _, flag = key.partition(".")
    if flag == "block-size":
        return CONFIGURATION in differing and all(map(_is_paired, (before, after)))
    if CONFIGURATION not in differing and f"{role}.{_SEQUENCES}" not in differing:
        return False
    margins = [_above_slots(each, role, key) for each in (before, after)]
    if None in margins:
        return False
    if flag == "max-cudagraph-capture-size":
        return margins == [0, 0]
    return flag == "max-num-batched-tokens" and margins[0] == margins[1]


def _is_paired(factors: _Factors) -> bool:
    prefill, decode = (factors.get(f"{role}.block-size") for role in _PAIRED_ROLES)
    is_disaggregated = any(key.startswith("prefill.") for key in factors)
    return is_disaggregated and prefill == decode


def _above_slots(factors: _Factors, role: str, key: str) -> int | None:
    """How far a flag is above the tokens of one step of all sequences; None where unknown."""
    drafted = factors.get(f"{role}.speculative-config.num-speculative-tokens", "0")
    figures = (factors.get(key, ""), factors.get(f"{role}.{_SEQUENCES}", ""), drafted)
    if not all(each.isdecimal() for each in figures):
        return None
    value, sequences, tokens = map(int, figures)
    return value - sequences * (1 + tokens)
