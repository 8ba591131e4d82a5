from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from generator.documents import dump_yaml_scalar, parse_document
from generator.errors import InvalidInput
from generator.yaml_text.scalars import AmbiguousNumber, Scalar, plain_value

DUMPED: list[tuple[Scalar, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-12, "-12"),
    (10240, "10240"),
    (0.92, "0.92"),
    (1.0, "1.0"),
    (1e-5, "1.0e-05"),
    (1.5e300, "1.5e+300"),
    (1e16, "1.0e+16"),
    (math.inf, ".inf"),
    (-math.inf, "-.inf"),
    (math.nan, ".nan"),
    # Text that needs no quotes.
    ("vllm", "vllm"),
    ("nvidia/Qwen3.8-2.4T", "nvidia/Qwen3.8-2.4T"),
    ("vllm/vllm-openai:v0.26.0", "vllm/vllm-openai:v0.26.0"),
    ("64x128x256", "64x128x256"),
    ("TP2DP4+EP", "TP2DP4+EP"),
    ("two words", "two words"),
    ("1.0.98", "1.0.98"),
    ("grün", "grün"),
    # Text that some reader takes for a number, a time, a boolean or nothing.
    ("1e-4", "'1e-4'"),
    ("5e3", "'5e3'"),
    ("12345e6", "'12345e6'"),
    ("0o17", "'0o17'"),
    ("0x1F", "'0x1F'"),
    ("010", "'010'"),
    ("09", "'09'"),
    ("1_000", "'1_000'"),
    ("0b11", "'0b11'"),
    ("8", "'8'"),
    ("+8", "'+8'"),
    ("0.5", "'0.5'"),
    ("-.5", "'-.5'"),
    ("1.", "'1.'"),
    (".nan", "'.nan'"),
    ("1:00:00", "'1:00:00'"),
    ("190:20:30.15", "'190:20:30.15'"),
    ("2026-01-01", "'2026-01-01'"),
    ("2026-01-01 10:00:00", "'2026-01-01 10:00:00'"),
    ("yes", "'yes'"),
    ("Off", "'Off'"),
    ("y", "'y'"),
    ("N", "'N'"),
    ("true", "'true'"),
    ("null", "'null'"),
    ("~", "'~'"),
    ("", "''"),
    ("=", "'='"),
    ("<<", "'<<'"),
    # Text that would end, or begin something else.
    (" leading", "' leading'"),
    ("trailing ", "'trailing '"),
    ("# x", "'# x'"),
    ("a #b", "'a #b'"),
    ("a: b", "'a: b'"),
    ("a:", "'a:'"),
    ("a, b", "'a, b'"),
    ("@x", "'@x'"),
    ("`x`", "'`x`'"),
    ("%x", "'%x'"),
    ("- x", "'- x'"),
    ("---", "'---'"),
    ("*x", "'*x'"),
    ("!x", "'!x'"),
    ("it's", "'it''s'"),
    ('{"kv_connector":"NixlConnector"}', '\'{"kv_connector":"NixlConnector"}\''),
    ("${HOME}/x", "'${HOME}/x'"),
    # Text that must be escaped.
    ("two\nlines", '"two\\nlines"'),
    ("tab\there", '"tab\\there"'),
    ('\x1b[31m"red"', '"\\x1b[31m\\"red\\""'),
    ("back\\slash\n", '"back\\\\slash\\n"'),
    ("\u2028\ufeff", '"\\u2028\\ufeff"'),
    ("\U000e0001", '"\\U000e0001"'),
]


@pytest.mark.parametrize(("value", "text"), DUMPED, ids=[repr(value) for value, _ in DUMPED])
def test_dumped_text(value: Scalar, text: str) -> None:
    assert dump_yaml_scalar(value) == text


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        dump_yaml_scalar("x\ud800")
    expected = "YAML cannot hold '\\ud800', half of a surrogate pair (remove it)"
    assert str(caught.value) == expected


READ: list[tuple[str, Scalar]] = [
    ("8", 8),
    ("0x1F", 31),
    ("-0x1F", -31),
    ("0b101", 5),
    ("1_000", 1000),
    ("007", 7),
    ("0o17", "0o17"),
    ("0x_", "0x_"),
    ("1e3", "1e3"),
    ("1.0e+3", 1000.0),
    ("1.5e3", "1.5e3"),
    (".5", 0.5),
    ("-.5", "-.5"),
    ("1_0.5", 10.5),
    (".inf", math.inf),
    ("-.Inf", -math.inf),
    ("1:00:00", "1:00:00"),
    ("190:20:30", "190:20:30"),
    ("190:20:30.15", "190:20:30.15"),
    ("2026-01-01", "2026-01-01"),
    ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
    ("yes", True),
    ("OFF", False),
    ("y", "y"),
    ("~", None),
    ("", None),
    ("=", "="),
]


@pytest.mark.parametrize(("text", "value"), READ, ids=[text for text, _ in READ])
def test_plain_text_is_read_as(text: str, value: Scalar) -> None:
    read = plain_value(text)
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("010", "010 is 8 to YAML 1.1 (octal) and 10 to YAML 1.2"),
        ("-0755", "-0755 is -493 to YAML 1.1 (octal) and -755 to YAML 1.2"),
        ("9" * 200, "a number of 200 characters"),
        ("0x" + "f" * 200, "a number of 202 characters"),
    ],
)
def test_ambiguous_numbers_are_refused(text: str, message: str) -> None:
    with pytest.raises(AmbiguousNumber, match=rf"\A{re.escape(message)}\Z"):
        plain_value(text)


NUMBER_LIKE = st.text(alphabet="0123456789abefox_+-.:", max_size=12)
WORD_LIKE = st.text(alphabet="yYnNoOfFtTrueLlsaAi~ .-:#'\"\\{}[],&*!|>%@`\t\n", max_size=12)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TEXTS = NUMBER_LIKE | WORD_LIKE | ANY_TEXT | st.sampled_from([text for text, _ in READ])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS


def same(left: Any, right: Any) -> bool:
    """Equal in type and value, -0.0 and NaN included, which == gets wrong."""
    return repr(left) == repr(right)


@given(SCALARS)
@example(-0.0)
@example("a\x85b")
def test_yaml_1_1_reads_back_what_was_dumped(value: Scalar) -> None:
    text = dump_yaml_scalar(value)
    assert "\n" not in text
    document = f"block: {text}\nflow: [{text}, {{k: {text}}}]\nlist:\n- {text}\n"
    for loader in {yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)}:
        read = yaml.load(document, Loader=loader)  # noqa: S506 - both are safe loaders
        values = [read["block"], read["flow"][0], read["flow"][1]["k"], read["list"][0]]
        assert all(same(each, value) for each in values)


@given(TEXTS)
def test_dumped_text_is_good_as_a_key(text: str) -> None:
    assert yaml.safe_load(f"{dump_yaml_scalar(text)}: 1") == {text: 1}


@given(SCALARS.filter(lambda value: not isinstance(value, str) or "\0" not in value))
def test_documents_read_back_what_was_dumped(value: Scalar) -> None:
    # Integers beyond 100 characters are refused on purpose; hypothesis stays far below that.
    assert same(parse_document(f"- {dump_yaml_scalar(value)}", "x").data[0], value)


@given(SCALARS)
def test_yaml_1_2_reads_back_what_was_dumped(value: Scalar) -> None:
    assert same(core_schema_value(dump_yaml_scalar(value)), value)


CORE_SCHEMA: list[tuple[str, Callable[[str], Scalar]]] = [
    (r"'(?:[^']|'')*'", lambda text: text[1:-1].replace("''", "'")),
    (r'"(?:[^"\\]|\\.)*"', lambda text: re.sub(r"\\(x..|u.{4}|U.{8}|.)", unescaped, text[1:-1])),
    (r"null|Null|NULL|~|", lambda _: None),
    (r"true|True|TRUE", lambda _: True),
    (r"false|False|FALSE", lambda _: False),
    (r"[-+]?[0-9]+", int),
    (r"0o[0-7]+|0x[0-9a-fA-F]+", lambda text: int(text, 0)),
    (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", float),
    (r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", lambda text: float(text.replace(".", "", 1))),
    (r"[^'\"].*", str),
]


def core_schema_value(text: str) -> Scalar:
    """What YAML 1.2.2 makes of a one-line scalar: chapters 7.3 (styles) and 10.3.2 (resolution)."""
    return next(read(text) for pattern, read in CORE_SCHEMA if re.fullmatch(pattern, text))


def unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r"}.get(escape, escape)
