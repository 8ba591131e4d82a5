from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.documents import Document, FieldPath, parse_document, read_document
from generator.errors import InvalidInput, Problem
from generator.yaml_text import nodes as yaml_nodes

# --- files ------------------------------------------------------------------------------------


def test_a_document_has_the_name_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    document = read_document(path)
    assert (document.source, document.text, document.data) == (str(path), "a: 1\n", {"a": 1})
    assert read_document(path, "HEAD:a.yaml").source == "HEAD:a.yaml"


def test_a_file_that_is_refused_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_document(tmp_path / "none.yaml")
    assert str(caught.value) == f"{tmp_path}/none.yaml: no such file (check the path)"


# --- places -----------------------------------------------------------------------------------

DOCUMENT = """\
# comment
defaults: &d
  tp: 4
deployments:
  - name: a
    <<: *d
  -
    name: b
    decode: {dp: 2,
      env: {"A.B": x}}
  - *d
"""


def test_lines_of_every_path() -> None:
    assert parse_document(DOCUMENT, "f").lines == {
        (): 2,
        ("defaults",): 2,
        ("defaults", "tp"): 3,
        ("deployments",): 4,
        ("deployments", 0): 5,
        ("deployments", 0, "name"): 5,
        ("deployments", 0, "tp"): 3,
        ("deployments", 1): 8,
        ("deployments", 1, "name"): 8,
        ("deployments", 1, "decode"): 9,
        ("deployments", 1, "decode", "dp"): 9,
        ("deployments", 1, "decode", "env"): 10,
        ("deployments", 1, "decode", "env", "A.B"): 10,
        ("deployments", 2): 11,
        ("deployments", 2, "tp"): 3,
    }


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("deployments", 0, "tp"), 3),
        (("deployments", 1, "prefill"), 8),
        (("deployments", 1, "decode", "tp", 0), 9),
        (("nothing", "like", "it"), 2),
        ((), 2),
    ],
)
def test_a_missing_field_has_the_line_of_its_nearest_ancestor(path: FieldPath, line: int) -> None:
    assert parse_document(DOCUMENT, "f").line(path) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("deployments", 1, "decode"), "f:9: deployments[1].decode: is bad (mend it)"),
        ((0, "a"), "f:2: [0].a: is bad (mend it)"),
        (
            ("deployments", 1, "decode", "env", "A.B"),
            "f:10: deployments[1].decode.env['A.B']: is bad (mend it)",
        ),
        ((), "f:2: is bad (mend it)"),
    ],
)
def test_a_problem_has_its_place(path: FieldPath, line: str) -> None:
    assert str(parse_document(DOCUMENT, "f").problem(path, "is bad", "mend it")) == line


# --- properties -------------------------------------------------------------------------------

KEYS = st.text("abc-_. #:é", min_size=1, max_size=6)
LEAVES = st.none() | st.booleans() | st.integers() | st.text("ab 1:-#'\"\n", max_size=8)
TREES = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=25,
)


def composed_lines(node: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from composed_lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield (*path, at), value.start_mark.line + 1
            yield from composed_lines(value, (*path, at))


def assert_as_pyyaml(document: Document) -> None:
    root = yaml.compose(document.text, Loader=yaml.SafeLoader)
    assert root is not None
    expected = dict(composed_lines(root)) | {(): root.start_mark.line + 1}
    assert dict(document.lines) == expected


@given(TREES, st.sampled_from([None, True, False]), st.integers(2, 6), st.integers(5, 100))
def test_data_and_lines_are_those_of_pyyaml(
    data: Any, flow_style: bool | None, indent: int, width: int
) -> None:
    text = yaml.safe_dump(
        data, default_flow_style=flow_style, indent=indent, width=width, allow_unicode=True
    )
    document = parse_document("# first\n\n" + text, "f")
    # Not ``data``: PyYAML folds some texts in narrow columns so that it reads others itself.
    assert document.data == yaml.safe_load(text)
    assert_as_pyyaml(document)


def read_or_refusals(text: str) -> Document | tuple[Problem, ...]:
    try:
        return parse_document(text, "f")
    except InvalidInput as error:
        return error.problems


def assert_each_is_one_line(problems: tuple[Problem, ...]) -> None:
    assert problems
    for problem in problems:
        assert str(problem).startswith("f:")
        assert "\n" not in str(problem)


@settings(max_examples=500)
@example("! >")
@example("! no")
@example("&a ! no")
@example('! "no"')
@given(st.text("abno-:?[]{},'\"#&!|>%@~ \t\n", max_size=24))
def test_any_text_is_read_as_pyyaml_does_or_refused(text: str) -> None:
    result = read_or_refusals(text)
    if isinstance(result, Document):
        assert result.data == yaml.load(text, Loader=yaml_nodes._LOADER)  # noqa: S506 - a safe one
    else:
        assert_each_is_one_line(result)


@given(st.binary(max_size=60).map(lambda content: content.decode("utf-8", "surrogateescape")))
def test_any_bytes_are_read_or_refused(text: str) -> None:
    result = read_or_refusals(text)
    if not isinstance(result, Document):
        assert_each_is_one_line(result)
