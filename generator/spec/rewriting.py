"""A spec with some of its sections written anew; the others stay as they are, comments included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from generator.documents import parse_document, write_text_atomically
from generator.errors import InvalidInput, Problem
from generator.files import keep_others, pasted
from generator.spec.reader import spec_from_document
from generator.spec.spec import Spec
from generator.yaml_text.entries import CannotSplit, Entry, TextEntries

_OWN = re.compile(rb"^[{ \t]*[\"']?pdrecipe[\"']?\s*:", re.MULTILINE)


def with_sections(spec: Spec, sections: Mapping[str, list[str] | None]) -> str:
    """The text of a spec with the lines below each of these keys replaced, None for no such key.

    A section that the spec does not have goes to its end. Raises InvalidInput for a spec whose
    keys cannot be told apart.
    """
    try:
        entries = TextEntries(spec.document.text).entries()
    except CannotSplit as error:
        raise InvalidInput(
            Problem(
                source=spec.document.source,
                message=str(error),
                hint="write its top level in block style, without merge keys",
            )
        ) from None
    lines: list[str] = []
    for entry in entries:
        if entry.key not in sections:
            lines += entry.lines()
            continue
        written = sections[entry.key]
        if written is not None:
            lines += [*entry.above, f"{entry.key}:", *written, *entry.after]
    missing = sections.keys() - {entry.key for entry in entries}
    for key in sorted(missing):
        written = sections[key]
        if written is not None:
            lines += ["", *Entry(key=key).value_lines(), *written]
    return "".join(f"{line}\n" for line in lines)


def section_lines(value: object) -> list[str]:
    """The lines of a section's value, below its key."""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
    return [f"  {line}" for line in text.splitlines()]


def rendering_hint(path: Path, original: Spec) -> str:
    """How to render a written spec: where it says, its recipes replace those of the original."""
    return (
        f"render it: pdrecipe generate {pasted(path)} --out FOLDER; without --out it replaces"
        f" recipes of {original.document.source}"
    )


def write_spec(path: Path, text: str, original: Spec) -> Spec:
    """Write a spec beside the one it was made of, once it has been read back.

    Raises InvalidInput where it is no valid spec, or where its relative names would lead elsewhere.
    """
    source = Path(original.document.source)
    if path.resolve().parent != source.resolve().parent:
        raise InvalidInput(
            Problem(
                source=str(path),
                message="is in another folder than the spec, whose names are relative to its own",
                hint=f"write it into {source.parent}",
            )
        )
    if path.resolve() == source.resolve():
        raise InvalidInput(
            Problem(
                source=str(path),
                message="is the spec itself",
                hint="give the new spec a name of its own",
            )
        )
    return write_new_spec(path, text)


def write_new_spec(path: Path, text: str) -> Spec:
    """Write a spec that may lie anywhere, once it has been read back.

    Raises InvalidInput where it is no valid spec, or would replace a file that is none.
    """
    keep_others(path, _OWN, "a spec")
    spec = spec_from_document(parse_document(text, str(path)), folder=path.parent)
    write_text_atomically(path, text)
    return spec
