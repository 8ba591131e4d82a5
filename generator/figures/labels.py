"""Where short labels go beside marks, so that none covers another, a mark or the border."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points of the page, its origin at the lower left."""

    left: float
    bottom: float
    right: float
    top: float

    def contains(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A mark with its label: its place, half its size, and the size of the text."""

    x: float
    y: float
    radius: float
    width: float
    height: float

    @property
    def mark(self) -> Box:
        r = self.radius
        return Box(self.x - r, self.y - r, self.x + r, self.y + r)


_GAP = 1.5
# Above and to the right first, where the eye looks for it; straight below last.
_SIDES = ((0, 1), (1, 1), (1, 0), (-1, 1), (-1, 0), (1, -1), (-1, -1), (0, -1))


def place_labels(
    anchors: Sequence[Anchor], marks: Sequence[Box], lines: Sequence[Box], frame: Box
) -> list[Box | None]:
    """A box for the label of each anchor, the first ones first; None where there is no room.

    A box covers no other label and no mark, stays in the frame, and keeps off the lines where it
    can.
    """
    covered = _Ink(frame, [*marks, *(anchor.mark for anchor in anchors)])
    on_lines = _Ink(frame, lines)
    placed: list[Box | None] = []
    for anchor in anchors:
        candidates = (_beside(anchor, *side) for side in _SIDES)
        free = [box for box in candidates if frame.contains(box) and not covered.hit(box)]
        clear = (box for box in free if not on_lines.hit(box))
        found = next(clear, free[0] if free else None)
        if found is not None:
            covered.add(found)
        placed.append(found)
    return placed


def _beside(anchor: Anchor, right: int, up: int) -> Box:
    """The box of a label on one side of its mark, a gap away."""
    reach = anchor.radius + _GAP
    x = anchor.x + right * (reach + anchor.width / 2)
    y = anchor.y + up * (reach + anchor.height / 2)
    half_width, half_height = anchor.width / 2, anchor.height / 2
    return Box(x - half_width, y - half_height, x + half_width, y + half_height)


class _Ink:
    """What of a frame is covered, in cells of half a point; crowds of marks take no longer."""

    _PER_POINT = 2

    def __init__(self, frame: Box, boxes: Sequence[Box]) -> None:
        self._frame = frame
        rows, columns = self._cells_of(frame)
        self._is_covered = np.zeros((rows.stop, columns.stop), dtype=np.bool_)
        for box in boxes:
            self.add(box)

    def add(self, box: Box) -> None:
        self._is_covered[self._cells_of(box)] = True

    def hit(self, box: Box) -> bool:
        return bool(self._is_covered[self._cells_of(box)].any())

    def _cells_of(self, box: Box) -> tuple[slice, slice]:
        """Rows and columns that a box touches, as far as they are in the frame."""
        return (
            self._span(box.bottom - self._frame.bottom, box.top - self._frame.bottom),
            self._span(box.left - self._frame.left, box.right - self._frame.left),
        )

    def _span(self, start: float, stop: float) -> slice:
        first, end = math.floor(start * self._PER_POINT), math.ceil(stop * self._PER_POINT)
        return slice(max(first, 0), max(end, 0))
