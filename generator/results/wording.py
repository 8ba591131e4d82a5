"""How figures and the kind of run they are from are written, wherever a person reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from generator.results.point import Origin

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


def rounded(value: float) -> str:
    """A figure to three significant digits, its whole part kept: ``5,012``, ``182``, ``5.41``."""
    if value == int(value):
        return f"{int(value):,}"
    digits = _SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, digits)}f}"


def percent_change(ratio: float) -> str:
    """A relative change with its sign: ``+4.2%``."""
    return f"{ratio:+z.1%}"
