"""JSON of result files: the fast reader and Python's say the same of every text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from generator.collection.unusable import Unusable, decode_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def outcome(read: Any, text: str) -> tuple[str, str]:
    """The value in Python's words, types and all; the kind of refusal where there is none."""
    try:
        return "value", repr(read(text))
    except Unusable:
        return "refused", "no number"
    except (ValueError, RecursionError) as error:
        return "refused", type(error).__name__


def refuse(name: str) -> float:
    raise Unusable(name)


@given(VALUES, st.booleans())
def test_a_value_is_read_as_python_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    strict = json.JSONDecoder(parse_constant=refuse).decode
    assert outcome(decode_json, text) == outcome(strict, text)


@given(VALUES, st.data())
def test_a_damaged_text_is_refused_as_python_refuses_it(value: Any, data: st.DataObject) -> None:
    text = json.dumps({"key": [value, 1.5, "text"]})
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = (
        text[:at] + data.draw(st.sampled_from(["", ",", '"', "1", "]", "-", "e9"])) + text[at + 1 :]
    )
    strict = json.JSONDecoder(parse_constant=refuse).decode
    assert outcome(decode_json, damaged) == outcome(strict, damaged)
