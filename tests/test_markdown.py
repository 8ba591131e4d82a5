"""Links in Markdown lead somewhere."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
UNREAD_FOLDERS = {".git", ".pytest_cache", ".venv", "build", "dist", "node_modules"}

_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_INLINE_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?([^\s>]+)>?", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def markdown_files(folder: Path) -> list[Path]:
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - UNREAD_FOLDERS)
        found += [Path(parent) / name for name in sorted(names) if name.endswith(".md")]
    return found


def anchors(markdown: str) -> set[str]:
    """Return the anchors of a file's headings, as Git forges make them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", markdown)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        kept = (sign for sign in text if sign in " -_" or unicodedata.category(sign)[0] in "LNM")
        slug = "".join(kept).replace(" ", "-")
        repeats = (f"{slug}-{count}" for count in range(1, len(found) + 1))
        found.add(slug if slug not in found else next(s for s in repeats if s not in found))
    return found


def has_anchor(document: Path, anchor: str) -> bool:
    return anchor in anchors(document.read_text(encoding="utf-8"))


def broken_links(document: Path) -> list[str]:
    """Return the link targets of a Markdown file that lead to no file or heading.

    Addresses outside the repository are not followed: tests need no network.
    """
    markdown = document.read_text(encoding="utf-8")
    prose = _CODE.sub("", _FENCE.sub("", markdown))
    broken = []
    for link in _INLINE_LINK.findall(prose) + _REFERENCE.findall(prose):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not (target.exists() and (not anchor or has_anchor(target, anchor))):
            broken.append(link)
    return broken


@pytest.mark.parametrize(
    "document", markdown_files(REPOSITORY), ids=lambda path: str(path.relative_to(REPOSITORY))
)
def test_no_markdown_link_is_broken(document: Path) -> None:
    assert broken_links(document) == []


def test_broken_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading: `x`, twice\n\n# a [link](b.md)\n")
    document = tmp_path / "here.md"
    document.write_text(
        "# One\n# One\n[a](there.md) [b](gone.md) [c](#one-1) [d](#one-2) [e](https://x.example)\n"
        "[f](there.md#a-heading-x-twice) [g](there.md#a-link) [h](there.md#b) `[i](code.md)`\n"
        "```\n[j](fence.md)\n```\n[k]: gone-too.md\n"
    )
    assert broken_links(document) == ["gone.md", "#one-2", "there.md#b", "gone-too.md"]
