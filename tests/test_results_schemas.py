"""The schemas of answers about results and plans: properties are described, examples valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generator.validation import schema

NAMES = (
    *("results", "collection", "pareto", "compare", "goodput", "compose", "next", "run"),
    *("roofline", "efficiency", "plan", "rehearsal"),
)


def described(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(part, dict):
        return
    for name, each in part.get("properties", {}).items():
        if "$ref" not in each:
            yield f"{place}.{name}", each
        yield from described(each, f"{place}.{name}")
    for name, each in part.get("$defs", {}).items():
        yield from described(each, name)
    for index, each in enumerate(part.get("anyOf", [])):
        yield from described(each, f"{place}|{index}")
    yield from described(part.get("items"), f"{place}[]")


ALL = [
    pytest.param(name, each, id=f"{name}:{place}")
    for name in NAMES
    for place, each in described(schema(name), name)
]


@pytest.mark.parametrize(("name", "part"), ALL)
def test_property_is_described_and_its_examples_are_valid(name: str, part: dict[str, Any]) -> None:
    assert part["description"].endswith(".")
    assert part["examples"]
    alone = Draft202012Validator({**part, "$defs": schema(name).get("$defs", {})})
    assert [each for each in part["examples"] if not alone.is_valid(each)] == []


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
