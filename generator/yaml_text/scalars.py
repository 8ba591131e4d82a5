"""Single YAML values: what plain text means when read, and text that any reader reads back.

Reading follows PyYAML's safe loader (YAML 1.1), because the programs that consume recipes use it,
save that text with a colon in it (``1:00:00``, base 60 in YAML 1.1) and dates stay text and that
an octal such as ``010`` is refused: YAML 1.2 reads another number. ``1e3`` stays text, as YAML 1.1
has it: there a float needs a dot and a signed exponent, ``1.0e+3``.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TypeAlias

import yaml

from generator.errors import InvalidInput, Problem
from generator.wording import shown

Scalar: TypeAlias = str | int | float | bool | None

MAX_NUMBER_CHARACTERS = 100

_STANDARD_TAG = "tag:yaml.org,2002:"
_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
_CORE_SCHEMA_1_2 = re.compile(
    r"(?:~|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))?\Z"
)
_ONE_LETTER_BOOLEANS = frozenset("yYnN")  # of the YAML 1.1 specification, though not of PyYAML
_PLAIN = re.compile(r"[\w/](?:[\w/.+@%=~$-]|:(?=[\w/])| +(?=[\w/]))*\Z")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class AmbiguousNumber(ValueError):
    """Plain text that readers take for different numbers, or for one of absurd length."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def plain_value(text: str) -> Scalar:
    """The value of an unquoted scalar.

    Raises AmbiguousNumber for an octal integer that YAML 1.2 reads as decimal, and for a number
    of more than 100 characters.
    """
    kind = _kind_in_yaml_1_1(text)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    if kind not in ("int", "float") or ":" in text:
        return text
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise AmbiguousNumber(f"a number of {len(text)} characters", "quote it to keep it text")
    digits = text.replace("_", "")
    if kind == "float":
        return float(digits.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return _integer(text, digits)


def _integer(text: str, digits: str) -> int | str:
    unsigned = digits.lstrip("+-")
    if unsigned in ("0x", "0b"):
        return text
    if unsigned == "0" or not unsigned.startswith("0"):
        return int(digits)
    if unsigned[1] in "xb":
        return int(digits, 0)
    octal, decimal = int(digits, 8), int(digits)
    if octal != decimal:
        message = f"{text} is {octal} to YAML 1.1 (octal) and {decimal} to YAML 1.2"
        raise AmbiguousNumber(message, "drop the leading zero, or quote it to keep it text")
    return octal


def dump_yaml_scalar(value: Scalar) -> str:
    """One line of YAML that reads back equal under YAML 1.1 and 1.2, in block or flow context.

    Text that either version resolves to something else is quoted: in single quotes, or in double
    quotes where it holds characters that must be escaped.

    Raises InvalidInput for half a surrogate pair, which no YAML file can hold.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _dumped_float(value)
    return _dumped_text(value)


def _dumped_text(value: str) -> str:
    if _PLAIN.match(value) and value.isprintable() and not _means_something_else(value):
        return value
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, value)) + '"'


def _dumped_float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    mantissa, exponent_mark, exponent = repr(float(value)).partition("e")
    if exponent_mark and "." not in mantissa:
        mantissa += ".0"  # YAML 1.1 takes 1e-05 for text, 1.0e-05 for a number
    return mantissa + exponent_mark + exponent


def _means_something_else(text: str) -> bool:
    return (
        _kind_in_yaml_1_1(text) is not None
        or _CORE_SCHEMA_1_2.match(text) is not None
        or text in _ONE_LETTER_BOOLEANS
    )


@lru_cache(maxsize=4096)  # recipes are of the same few hundred words
def _kind_in_yaml_1_1(text: str) -> str | None:
    """``int``, ``bool``, ``timestamp`` and so on, or None for text, as PyYAML resolves it."""
    for tag, pattern in _RESOLVERS.get(text[:1], []):
        if pattern.match(text):
            return tag.removeprefix(_STANDARD_TAG)
    return None


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        message = f"YAML cannot hold {shown(character)}, half of a surrogate pair"
        raise InvalidInput(Problem(message=message, hint="remove it"))
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
