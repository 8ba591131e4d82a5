"""Bound, prediction and measurement of the public points as a table, notes and a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from generator.efficiency.cited_comparison import Comparison, Quantity
from generator.efficiency.cited_efficiency import cited_acceptance_rate
from generator.results.wording import percent_change, rounded

Table: TypeAlias = tuple[Sequence[str], list[list[str]]]

_UNITS = {
    Quantity.TPOT_MS: "TPOT, ms",
    Quantity.TOKENS_PER_S_PER_USER: "tokens/s/user",
    Quantity.TOTAL_TOKENS_PER_S_PER_GPU: "tokens/s/GPU",
}


def cited_table(comparisons: Sequence[Comparison]) -> Table:
    """A row for each published figure."""
    rows = [
        [
            each.point.name,
            _UNITS[each.quantity],
            rounded(each.bound),
            rounded(each.predicted),
            rounded(each.measured),
            f"{percent_change(each.residual)}{' *' if each.is_by_construction else ''}",
        ]
        for each in comparisons
    ]
    return ["public point", "figure", "bound", "predicted", "measured", "residual"], rows


def cited_notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What the bounds are of, what agreement is no evidence, and where the points come from."""
    yield "Bounds: on TPOT from below, on rates from above. Residual: predicted / measured - 1."
    constructed = [each for each in comparisons if each.is_by_construction]
    if constructed:
        yield "* matched by construction: its figure decided a factor, so agreement is no evidence."
    if any(each.point.speculative_tokens for each in constructed):
        yield (
            "The acceptance rate was not published:"
            f" {cited_acceptance_rate():.2f} is what the one point with MTP asks for."
        )
    for source in dict.fromkeys(each.point.source for each in comparisons):
        yield f"Source: {source}."


def cited_document(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The same for a JSON document, in the units of each quantity."""
    return [
        {
            "point": each.point.name,
            "quantity": each.quantity.name.lower(),
            "bound": each.bound,
            "predicted": each.predicted,
            "measured": each.measured,
            "residual": each.residual,
            "is_by_construction": each.is_by_construction,
            "source": each.point.source,
            "as_of": each.point.as_of,
        }
        for each in comparisons
    ]
