"""What holds for every frontier: nothing on it is beaten, and everything off it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from generator.figures.labels import Anchor, Box, place_labels
from generator.pareto.area import area_under
from generator.pareto.frontier import best_of_each, dominates, frontier

# Few values, so that ties are common.
COORDINATES = st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e9))
POINTS = st.lists(st.tuples(COORDINATES, COORDINATES), max_size=40)


@given(POINTS)
def test_no_kept_point_is_dominated_and_each_dropped_one_is(
    pairs: list[tuple[float, float]],
) -> None:
    kept = set(frontier(pairs))
    for index, pair in enumerate(pairs):
        assert (index not in kept) == any(dominates(pairs[other], pair) for other in kept)
        assert (index not in kept) == any(dominates(other, pair) for other in pairs)


@given(POINTS)
def test_the_best_of_each_is_all_that_nothing_beats_at_its_value(
    pairs: list[tuple[float, float]],
) -> None:
    kept = best_of_each(pairs)
    assert [pairs[index][0] for index in kept] == sorted(pairs[index][0] for index in kept)
    for index, (x, y) in enumerate(pairs):
        is_beaten = any(other_x == x and other_y > y for other_x, other_y in pairs)
        assert (index in kept) != is_beaten


@given(POINTS)
def test_again_changes_nothing(pairs: list[tuple[float, float]]) -> None:
    once = [pairs[index] for index in frontier(pairs)]
    assert frontier(once) == list(range(len(once)))


@given(POINTS, st.randoms(use_true_random=False))
def test_order_does_not_matter(pairs: list[tuple[float, float]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [pairs[index] for index in frontier(pairs)] == [
        shuffled[index] for index in frontier(shuffled)
    ]


@given(POINTS)
def test_it_falls_from_left_to_right(pairs: list[tuple[float, float]]) -> None:
    kept = [pairs[index] for index in frontier(pairs)]
    assert [x for x, _ in kept] == sorted(x for x, _ in kept)
    assert [y for _, y in kept] == sorted((y for _, y in kept), reverse=True)


@given(POINTS, st.floats(0, 1e8), st.floats(1, 1e8))
def test_area_is_that_of_the_frontier_alone(
    pairs: list[tuple[float, float]], start: float, width: float
) -> None:
    kept = [pairs[index] for index in frontier(pairs)]
    stop = start + width
    of_all = area_under(pairs, start, stop, more_x_is_better=True)
    of_frontier = area_under(kept, start, stop, more_x_is_better=True)
    assert abs(of_all.area - of_frontier.area) <= 1e-9 * max(1.0, of_all.area)
    highest = max((y for _, y in pairs), default=0.0)
    assert of_all.mean <= highest * (1 + 1e-9)


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes share more than an edge."""
    return (
        one.left < other.right
        and other.left < one.right
        and one.bottom < other.top
        and other.bottom < one.top
    )


PLACES = st.tuples(st.floats(0, 300), st.floats(0, 200), st.integers(1, 5))


@given(st.lists(PLACES, max_size=40))
def test_labels_cover_neither_each_other_nor_a_mark(places: list[tuple[float, float, int]]) -> None:
    anchors = [Anchor(x=x, y=y, radius=3, width=6.0 * n, height=8) for x, y, n in places]
    frame = Box(0, 0, 300, 200)
    placed = [box for box in place_labels(anchors, [], [], frame) if box is not None]
    for index, box in enumerate(placed):
        assert frame.contains(box)
        assert not any(overlap(box, other) for other in placed[:index])
        assert not any(overlap(box, anchor.mark) for anchor in anchors)
