"""How figures and the kind of run they are from are written, wherever a person reads them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from generator.results.point import MeasuredPoint, Origin
from generator.results.repeats import Repeated
from generator.wording import first_of, plural

_ORIGINS = {
    Origin.MEASURED: "measured",
    Origin.REHEARSAL: "REHEARSAL - simulated engines, no speed here was measured",
    Origin.SYNTHETIC: "SYNTHETIC - computed from a stated model, nothing here was measured",
}
_SIGNIFICANT = 3


def origins_label(origins: Iterable[Origin]) -> str:
    """What kind of figures these are, in capitals where they were not measured."""
    kinds = sorted(set(origins))
    if len(kinds) == 1:
        return _ORIGINS[kinds[0]]
    return f"MIXED - {' and '.join(str(kind) for kind in kinds)} figures side by side"


def unmeasured_notes(origins: Iterable[Origin], figures: str) -> Iterator[str]:
    """A sentence for each kind of results that no engine on a GPU gave."""
    for origin in origins:
        if origin is not Origin.MEASURED:
            yield f"{origin.value.capitalize()} results: these {figures} were not measured."


def changed_recipes(points: Iterable[MeasuredPoint]) -> str:
    """Points of recipes that changed since: ``3 results of recipes that changed since: a``."""
    recipes = Counter(point.subject.recipe for point in points)
    counted = plural(recipes.total(), "result")
    return f"{counted} of recipes that changed since: {first_of(recipes)}"


def rounded(value: float) -> str:
    """A figure to three significant digits, its whole part kept: ``5,012``, ``182``, ``5.41``."""
    if value == int(value):
        return f"{int(value):,}"
    digits = _SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, digits)}f}"


def percent_change(ratio: float) -> str:
    """A relative change with its sign: ``+4.2%``; in words where there was nothing before."""
    return "up from nothing" if ratio == math.inf else f"{ratio:+z.1%}"


def half_range_share(figure: Repeated) -> str:
    """How far runs are apart, as a share of their mean: `` +-1.2%``; empty for one run."""
    if figure.half_range is None or not figure.mean:
        return ""
    return f" +-{figure.half_range / abs(figure.mean):.1%}"
