"""Where short labels go beside marks, so that none covers another, a mark or the border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points of the page, its origin at the lower left."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

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
    cells, on_lines = _Cells([*marks, *(anchor.mark for anchor in anchors)]), _Cells(lines)
    placed: list[Box | None] = []
    for anchor in anchors:
        candidates = (_beside(anchor, *side) for side in _SIDES)
        free = [box for box in candidates if frame.contains(box) and not cells.hit(box)]
        clear = (box for box in free if not on_lines.hit(box))
        found = next(clear, free[0] if free else None)
        if found is not None:
            cells.add(found)
        placed.append(found)
    return placed


def _beside(anchor: Anchor, right: int, up: int) -> Box:
    """The box of a label on one side of its mark, a gap away."""
    reach = anchor.radius + _GAP
    x = anchor.x + right * (reach + anchor.width / 2)
    y = anchor.y + up * (reach + anchor.height / 2)
    half_width, half_height = anchor.width / 2, anchor.height / 2
    return Box(x - half_width, y - half_height, x + half_width, y + half_height)


class _Cells:
    """Boxes by the cells of a grid they touch, so that ten thousand marks stay quick."""

    _SIZE = 24.0

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._boxes: dict[tuple[int, int], list[Box]] = {}
        for box in boxes:
            self.add(box)

    def add(self, box: Box) -> None:
        for cell in self._touched(box):
            self._boxes.setdefault(cell, []).append(box)

    def hit(self, box: Box) -> bool:
        return any(
            box.overlaps(other)
            for cell in self._touched(box)
            for other in self._boxes.get(cell, ())
        )

    def _touched(self, box: Box) -> list[tuple[int, int]]:
        columns = range(int(box.left // self._SIZE), int(box.right // self._SIZE) + 1)
        rows = range(int(box.bottom // self._SIZE), int(box.top // self._SIZE) + 1)
        return [(column, row) for column in columns for row in rows]
