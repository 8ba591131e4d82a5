from __future__ import annotations

from typing import Any

import pytest
import yaml

from generator.documents import parse_document
from generator.errors import InvalidInput
from generator.yaml_text import nodes as yaml_nodes

LOADERS = {"pure": yaml.SafeLoader} | (
    {"libyaml": yaml.CSafeLoader} if yaml.__with_libyaml__ else {}
)


@pytest.fixture(params=sorted(LOADERS))
def _each_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "_LOADER", LOADERS[request.param])


each_parser = pytest.mark.usefixtures("_each_parser")


def refusal(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_document(text, "f")
    return str(caught.value).splitlines()


# --- what is read -----------------------------------------------------------------------------

READ: list[tuple[str, Any]] = [
    ("a: 1", {"a": 1}),
    ("- a\n- [b, {c: d}]", ["a", ["b", {"c": "d"}]]),
    ("\ufeffa: 1", {"a": 1}),
    ("---\na: 1\n...\n", {"a": 1}),
    ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    ("text", "text"),
    ("a:", {"a": None}),
    ("a: ''", {"a": ""}),
    ("a: {}\nb: []", {"a": {}, "b": []}),
    ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
    ("time: 1:00:00", {"time": "1:00:00"}),
    ("ratio: 190:20:30", {"ratio": "190:20:30"}),
    ("day: 2026-01-01", {"day": "2026-01-01"}),
    ("a: 1e3", {"a": "1e3"}),
    ("a: -.inf", {"a": float("-inf")}),
    ("\"on\": 1\n'2': 3", {"on": 1, "2": 3}),
    ("a: !!str 1\nb: !!float 1\nc: !!int '3'", {"a": "1", "b": 1.0, "c": 3}),
    ("a: !!map {b: !!seq [1]}", {"a": {"b": [1]}}),
    ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
    ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
    ("x: &x {p: 1, q: 2}\ny: {<<: *x, q: 3}", {"x": {"p": 1, "q": 2}, "y": {"p": 1, "q": 3}}),
    (
        "- &x {p: 1}\n- &y {p: 2, q: 2}\n- <<: [*x, *y]",
        [{"p": 1}, {"p": 2, "q": 2}, {"p": 1, "q": 2}],
    ),
    ("'<<': 1", {"<<": 1}),
    ("a: <<\nb: =", {"a": "<<", "b": "="}),
]


@each_parser
@pytest.mark.parametrize(("text", "data"), READ, ids=[text for text, _ in READ])
def test_read(text: str, data: Any) -> None:
    assert parse_document(text, "f").data == data


def test_not_a_number_is_a_number() -> None:
    value = parse_document("a: .nan", "f").data["a"]
    assert repr(value) == "nan"


def test_aliased_values_are_separate_copies() -> None:
    data = parse_document("a: &x {b: [1]}\nc: *x", "f").data
    data["a"]["b"].append(2)
    assert data["c"] == {"b": [1]}


# --- what is refused --------------------------------------------------------------------------

INDENTATION = "the indentation does not fit the lines above (align it with its siblings)"
TAB = "a tab in the indentation (indent with spaces)"
COLON = "': ' is not expected here (indent as the line above, or quote text that holds ': ')"
ESCAPE = "unknown escape in double quotes (use single quotes, or write '\\\\' for a backslash)"
SQUARE = "a '[' is opened here and not closed, or a ',' is missing (close it with ']')"
CURLY = (
    "a '{' is opened here and not closed, or a ',' is missing"
    " (close it with '}', or quote text that holds braces)"
)
QUOTE = "a quote is opened here and not closed (close it, or double a ' inside '...')"
NEITHER = (
    "neither 'key: value' nor a list item"
    " (write 'key: value', and indent text that continues a line)"
)
NO_KEY = "a key is missing before ':' (write the key, or quote text that starts with ':')"
DIRECTIVE = "a line that starts with '%' is a directive to YAML (remove or quote it)"
DEEP = "nested more than 64 levels deep (is a bracket not closed?)"
MANY = "more than 100,000 values once aliases are written out (use fewer aliases)"
LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
MERGES = "m0: &m0 {k0: 0}\n" + "".join(
    f"m{at}: &m{at} {{<<: *m{at - 1}, k{at}: 0}}\n" for at in range(1, 2000)
)
ALIAS_CHAIN = "a0: &a0 [x]\n" + "".join(f"a{at}: &a{at} [*a{at - 1}]\n" for at in range(1, 70))

REFUSED: list[tuple[str, str, list[str]]] = [
    # Nothing, or too much.
    ("empty", "", ["f: is empty"]),
    ("only comments", "# nothing\n\n", ["f: is empty"]),
    ("only a marker", "---\n", ["f: is empty"]),
    (
        "two documents",
        "a: 1\n---\nb: 2\n",
        ["f:2: a second document starts here (one document per file: remove '---')"],
    ),
    ("NUL", "a: 1\nb: \0\n", ["f:2: control character U+0000: not a text file (remove it)"]),
    ("ESC", "a: \x1b[1m\n", ["f:1: control character U+001B: not a text file (remove it)"]),
    (
        "NUL as an escape",
        'a: "\\0"',
        [
            (
                "f:1: a: character U+0000 cannot be used"
                " (remove the escape)"
            )
        ],
    ),
    ("brackets", "[" * 100_000, [f"f:1: {DEEP}"]),
    ("braces", "{a: " * 100_000, [f"f:1: {DEEP}"]),
    ("dashes", "- " * 100_000, [f"f:1: {DEEP}"]),
    ("steps", "".join(" " * at + "a:\n" for at in range(100)), [f"f:65: {DEEP}"]),
    ("aliases in aliases", ALIAS_CHAIN, [f"f:1: {DEEP}"]),
    ("billion laughs", LAUGHS, [f"f:1: {MANY}"]),
    ("merges of merges", MERGES, [f"f:442: {MANY}"]),
    # Keys.
    (
        "duplicate keys, all of them",
        "a: 1\nb: 2\na: 3\nc:\n- d: 1\n  d: 2\na: 5\n",
        [
            "f:3: a: duplicate key 'a', first on line 1 (keep one of them)",
            "f:6: c[0].d: duplicate key 'd', first on line 5 (keep one of them)",
            "f:7: a: duplicate key 'a', first on line 1 (keep one of them)",
        ],
    ),
    (
        "same key quoted",
        "a: 1\n'a': 2",
        ["f:2: a: duplicate key 'a', first on line 1 (keep one of them)"],
    ),
    ("on", "on: 1", ["f:1: key 'on' is read as a boolean, not as text (put it in quotes)"]),
    (
        "keys that are numbers or null",
        "a:\n  1: x\n  2.5: y\n  ~: z",
        [
            "f:2: a: key '1' is read as an integer, not as text (put it in quotes)",
            "f:3: a: key '2.5' is read as a number, not as text (put it in quotes)",
            "f:4: a: key '~' is read as null, not as text (put it in quotes)",
        ],
    ),
    ("a list as key", "[a]: 1", ["f:1: a key must be text, not a list (put it in quotes)"]),
    ("placeholder", "{{x}}: 1", ["f:1: a key must be text, not a mapping (put it in quotes)"]),
    ("tagged key", "!!int '1': 2", ["f:1: a key must be text, not an integer (put it in quotes)"]),
    ("no key in braces", "{: 1}", [f"f:1: {NO_KEY}"]),
    (
        "no key",
        "a: 1\n: 1",
        [f"f:2: {NO_KEY}"],
    ),
    (
        "merge of a number",
        "a:\n  <<: 3\n",
        ["f:2: a: '<<' takes mappings, not an integer (give it an alias such as *defaults)"],
    ),
    (
        "merge of a list of text",
        "<<: [x]",
        ["f:1: '<<' takes mappings, not a string (give it an alias such as *defaults)"],
    ),
    # Values.
    (
        "octal",
        "a:\n- 010",
        [
            (
                "f:2: a[0]: 010 is 8 to YAML 1.1 (octal) and 10 to YAML 1.2"
                " (drop the leading zero, or quote it to keep it text)"
            )
        ],
    ),
    (
        "a number of 200 digits",
        "a: " + "9" * 200,
        ["f:1: a: a number of 200 characters (quote it to keep it text)"],
    ),
    ("custom tag", "a: !Foo x", ["f:1: a: tag !Foo cannot be used here (remove the tag)"]),
    (
        "Python tag",
        "a: !!python/object/apply:os.system [ls]",
        ["f:1: a: tag !!python/object/apply:os.system cannot be used here (remove the tag)"],
    ),
    ("set", "a: !!set {b}", ["f:1: a: tag !!set cannot be used here (remove the tag)"]),
    ("binary", "a: !!binary aGk=", ["f:1: a: tag !!binary cannot be used here (remove the tag)"]),
    ("text tagged int", "a: !!int x", ["f:1: a: tag !!int cannot be used here (remove the tag)"]),
    (
        "alias of nothing",
        "a: *b",
        ["f:1: a: alias *b has no anchor &b above it (quote text that starts with '*')"],
    ),
    (
        "alias of itself",
        "a: &x\n  b: [*x]",
        ["f:2: a.b[0]: alias *x stands inside what it names (write the value out)"],
    ),
    # Syntax.
    ("tab", "a:\n\tb: 1", [f"f:2: {TAB}"]),
    ("tab after spaces", "a:\n  b: 1\n  \tc: 1", [f"f:3: {TAB}"]),
    ("tab below a value", "a: x\n\tb: 1", [f"f:2: {TAB}"]),
    ("two colons", "a: b: c", [f"f:1: {COLON}"]),
    ("indented too far", "a: 1\n  b: 2", [f"f:2: {COLON}"]),
    ("indented too little", "a:\n    b: 1\n  c: 2", [f"f:3: {INDENTATION}"]),
    ("key in a list", "- a\nb: 1", [f"f:2: {INDENTATION}"]),
    ("no colon", "a: 1\nfoo\nb: 2", [f"f:2: {NEITHER}"]),
    ("unclosed [", "a: 1\nb: [1,\nc: 2", [f"f:2: {SQUARE}"]),
    ("only [", "a: 1\nb: [\n", ["f:2: the text ends inside a '[' or '{' (close it)"]),
    ("unclosed {", "a: 1\nb: {c: 1", [f"f:2: {CURLY}"]),
    ("unclosed quote", "a: 1\nb: 'x\nc: 2\nd: 3\n", [f"f:2: {QUOTE}"]),
    (
        "stray bracket",
        "a: 1\n]",
        [
            (
                "f:2: ']' closes or parts nothing here"
                " (remove it, or quote the value)"
            )
        ],
    ),
    (
        "text after a quote",
        "a: 'x' y",
        [
            (
                "f:1: 'y' follows a value that has ended"
                " (quote the whole value)"
            )
        ],
    ),
    ("@", "a: @x", ["f:1: a value cannot start with '@' (put it in quotes)"]),
    ("%", "a: %x", ["f:1: a value cannot start with '%' (put it in quotes)"]),
    ("backtick", "a: `x`", ["f:1: a value cannot start with '`' (put it in quotes)"]),
    ("comma", "a: ,", ["f:1: a value is missing here (quote text that starts with , ] or })"]),
    (
        "list after a key",
        "a: - b",
        [
            (
                "f:1: a list item '- ' is not expected here"
                " (put the list on the line below its key)"
            )
        ],
    ),
    ("escape", 'a: "C:\\dir"', [f"f:1: {ESCAPE}"]),
    (
        "text after |",
        "a: |x\n b",
        [
            (
                "f:1: text follows '|' or '>'"
                " (put it on the lines below, or quote the value)"
            )
        ],
    ),
    (
        "tag handle",
        "a: !x!y z",
        [
            (
                "f:1: a tag that YAML does not know"
                " (quote text that starts with '!')"
            )
        ],
    ),
    (
        "lone star",
        "a: *",
        [
            (
                "f:1: an anchor or alias without a name"
                " (quote text that starts with '&' or '*')"
            )
        ],
    ),
    ("version", "%YAML 2.0\n---\na: 1", [f"f:1: {DIRECTIVE}"]),
    # What was found before the parser gave up is told too.
    (
        "duplicate, then a syntax error",
        "x: {a: 1, a: 2}\non: 1\ny: [1\n",
        ["f:1: x.a: duplicate key 'a', first on line 1 (keep one of them)", f"f:3: {SQUARE}"],
    ),
]  # fmt: skip


@each_parser
@pytest.mark.parametrize(
    ("text", "lines"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused(text: str, lines: list[str]) -> None:
    assert refusal(text) == lines


@each_parser
@pytest.mark.parametrize("escape", ["\\ud800", "\\U00110000", "\\Uffffffff"])
def test_an_escape_of_no_character_is_refused(escape: str) -> None:
    assert len(refusal(f'a: "{escape}"')) == 1


def test_a_document_of_too_many_values_is_refused() -> None:
    assert len(parse_document("- 1\n" * 99_999, "f").data) == 99_999
    assert refusal("- 1\n" * 100_001) == [f"f:100001: {MANY}"]


def test_explosions_are_refused() -> None:
    """Each in about a second: what they would expand to is bounded before it is built."""
    for text in ("[" * 8_000_000, LAUGHS, MERGES):
        assert len(refusal(text)) == 1
