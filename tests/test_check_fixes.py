"""Fixes in the text: the value alone changes, comments, order and style stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.checks.fixes import apply_edits
from generator.checks.rule import Edit, QuoteText, SetValue
from generator.documents import parse_document
from generator.wording import FieldPath


def set_value(*path: str | int, old: object, value: object) -> Edit:
    return SetValue(path=path, old=old, value=value)


@pytest.mark.parametrize(
    ("text", "edit", "fixed"),
    [
        (
            "a:   8196  # 8k\nb: 1\n",
            set_value("a", old=8196, value=8192),
            "a:   8192  # 8k\nb: 1\n",
        ),
        ("a: {b: [1, 8196]}\n", set_value("a", "b", 1, old=8196, value=1), "a: {b: [1, 1]}\n"),
        ("a: '4'\r\nb: 1\r\n", set_value("a", old="4", value=4), "a: 4\r\nb: 1\r\n"),
        ("# é\na: 'é'\nb: 2 # é\n", set_value("b", old=2, value=3), "# é\na: 'é'\nb: 3 # é\n"),
        ("a: 0x10\n", QuoteText(path=("a",)), "a: '0x10'\n"),
        ("a: yes # x\n", QuoteText(path=("a",)), "a: 'yes' # x\n"),
        ("a: 1", set_value("a", old=1, value=2), "a: 2"),
    ],
)
def test_one_value(text: str, edit: Edit, fixed: str) -> None:
    assert apply_edits(text, [edit, edit], "a.yaml") == (fixed, 1)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        pytest.param("a: 2\n", set_value("a", old=1, value=3), id="another value"),
        pytest.param("a: &x 1\nb: *x\n", set_value("b", old=1, value=3), id="alias"),
        pytest.param("a: &x {c: 1}\nb: *x\n", set_value("b", "c", old=1, value=3), id="aliased"),
        pytest.param(
            "a: &x {c: 1}\nb: {<<: *x}\n", set_value("b", "c", old=1, value=3), id="merge"
        ),
        pytest.param("a: &x {c: 1}\nb: *x\n", set_value("a", "c", old=1, value=3), id="anchored"),
        pytest.param("a: {b: 1}\n", set_value("a", "c", old=1, value=3), id="absent"),
        pytest.param("a: 'x'\n", QuoteText(path=("a",)), id="quoted already"),
        pytest.param("a: >\n  1\n  2\n", set_value("a", old="1 2\n", value="x"), id="block"),
    ],
)
def test_no_edit_that_would_change_more(text: str, edit: Edit) -> None:
    assert apply_edits(text, [edit], "a.yaml") == (text, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.sampled_from(["", "  # why", " # 'x': {"])),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_lines_of_other_values_stay(rows: list[tuple[int, str]], data: st.DataObject) -> None:
    text = "".join(f"k{at}: {value}{comment}\n" for at, (value, comment) in enumerate(rows))
    chosen = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    new = {at: data.draw(st.integers(0, 10**6)) for at in chosen}
    path: dict[int, FieldPath] = {at: (f"k{at}",) for at in chosen}
    edits = [SetValue(path=path[at], old=rows[at][0], value=new[at]) for at in chosen]
    fixed, made = apply_edits(text, edits, "a.yaml")
    assert made == len(chosen)
    expected = {f"k{at}": new.get(at, value) for at, (value, _) in enumerate(rows)}
    assert parse_document(fixed, "a.yaml").data == expected
    for at, (before, after) in enumerate(zip(text.splitlines(), fixed.splitlines(), strict=True)):
        assert before == after or at in chosen
        assert before.partition("#")[2] == after.partition("#")[2]
