"""PyYAML's syntax errors, long and in terms of tokens, as one line that a writer understands."""

from __future__ import annotations

import re

import yaml

from generator.errors import Problem
from generator.wording import shown

MAX_DEPTH = 64
TOO_DEEP = (f"nested more than {MAX_DEPTH} levels deep", "is a bracket not closed?")
NO_KEY = ("a key is missing before ':'", "write the key, or quote text that starts with ':'")

# libyaml and PyYAML's own parser word the same error differently, hence the patterns.
_WHERE_FOUND: tuple[tuple[str, str, str], ...] = (
    (
        r"mapping values are not allowed|found unexpected ':'",
        "': ' is not expected here",
        "indent as the line above, or quote text that holds ': '",
    ),
    (
        r"sequence entries are not allowed",
        "a list item '- ' is not expected here",
        "put the list on the line below its key",
    ),
    (
        r"unknown escape|invalid Unicode character escape|expected escape sequence",
        "unknown escape in double quotes",
        "use single quotes, or write '\\\\' for a backslash",
    ),
    (
        r"undefined tag handle|expected tag URI|expected URI",
        "a tag that YAML does not know",
        "quote text that starts with '!'",
    ),
    (
        r"alphabetic or numeric character",
        "an anchor or alias without a name",
        "quote text that starts with '&' or '*'",
    ),
    (
        r"comment or line break|chomping or indentation",
        "text follows '|' or '>'",
        "put it on the lines below, or quote the value",
    ),
    (r"maximum nesting depth", *TOO_DEEP),
)
# What is wrong began at the error's context, an opening quote or bracket, not where parsing ended.
_WHERE_BEGUN: tuple[tuple[str, str, str], ...] = (
    (
        r"could not find expected ':'",
        "neither 'key: value' nor a list item",
        "write 'key: value', and indent text that continues a line",
    ),
    (
        r"expected ',' or '\]'",
        "a '[' is opened here and not closed, or a ',' is missing",
        "close it with ']'",
    ),
    (
        r"expected ',' or '}'",
        "a '{' is opened here and not closed, or a ',' is missing",
        "close it with '}', or quote text that holds braces",
    ),
    (
        r"unexpected end of stream|unexpected document indicator",
        "a quote is opened here and not closed",
        "close it, or double a ' inside '...'",
    ),
)
_OUT_OF_PLACE = re.compile(r"expected (key|'-' indicator|<block end>|'?<document start>)")
_TAB_INDENT = re.compile(r" *\t")


def syntax_problem(error: yaml.MarkedYAMLError, text: str, source: str) -> Problem:
    """What a parser error means, at the line where the mistake most likely is."""
    mark = error.problem_mark
    rows = [*text.splitlines(), ""]
    index = min(mark.line, len(rows) - 1) if mark else 0
    row, column = rows[index], mark.column if mark else 0
    problem = error.problem or "cannot be read"
    begun = _known(problem, _WHERE_BEGUN)
    if _TAB_INDENT.match(row):
        message, hint = "a tab in the indentation", "indent with spaces"
    elif row.startswith("%"):
        message, hint = "a line that starts with '%' is a directive to YAML", "remove or quote it"
    elif "cannot start any token" in problem:
        message, hint = f"a value cannot start with {shown(row[column])}", "put it in quotes"
    elif "node content" in problem:
        message, hint = _no_value(row[column:])
    elif _OUT_OF_PLACE.search(problem):
        message, hint = _out_of_place(row, column)
    elif begun and error.context_mark:
        index = error.context_mark.line
        message, hint = begun
    else:
        message, hint = _known(problem, _WHERE_FOUND) or (f"not YAML: {problem}", "")
    line = max(1, min(index + 1, len(rows) - 1))
    return Problem(message=message, hint=hint, source=source, line=line)


def _known(problem: str, table: tuple[tuple[str, str, str], ...]) -> tuple[str, str] | None:
    for pattern, message, hint in table:
        if re.search(pattern, problem):
            return message, hint
    return None


def _no_value(rest: str) -> tuple[str, str]:
    """What stands, or that nothing stands, where the parser wanted a value."""
    if not rest.strip():
        return "the text ends inside a '[' or '{'", "close it"
    if rest.startswith(":"):
        return NO_KEY
    return "a value is missing here", "quote text that starts with , ] or }"


def _out_of_place(row: str, column: int) -> tuple[str, str]:
    """What stands where the parser wanted the next key or item."""
    rest = row[column:].rstrip()
    if rest.startswith(":"):
        return NO_KEY
    if rest.startswith(("]", "}", ",")):
        return f"{shown(rest[0])} closes or parts nothing here", "remove it, or quote the value"
    if row[:column].strip():
        return f"{shown(rest)} follows a value that has ended", "quote the whole value"
    return "the indentation does not fit the lines above", "align it with its siblings"
