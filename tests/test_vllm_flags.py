"""Which flags vLLM has, by release, and the nearest one to a slip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.documents import read_document
from generator.facts.fact import DATA
from generator.facts.vllm_flags import (
    flag_tables,
    is_unknown,
    known_release,
    nearest_flag,
    nearest_releases,
)
from generator.validation import problems


def test_the_table_is_valid() -> None:
    assert problems(read_document(DATA / "vllm_flags.yaml"), "vllm-flags") == []


def test_the_table_is_that_of_the_parsers(shared: Path) -> None:
    recorded = json.loads((shared / "truth" / "vllm_serve_flags.json").read_text())["versions"]
    assert set(recorded) == set(flag_tables())
    for version, flags in recorded.items():
        assert set(flags) <= flag_tables()[version]


@pytest.mark.parametrize(
    ("version", "exact", "beside"),
    [
        ("0.26.0", "0.26.0", ("0.26.0", "0.27.1")),
        ("v0.28.0", "0.28.0", ("0.28.0",)),
        ("0.26.1rc1.dev1177+ga9a17e709", None, ("0.26.0", "0.27.1")),
        ("0.33.0", None, ("0.28.0",)),
        ("0.20.0", None, ("0.26.0",)),
        (None, None, ("0.26.0", "0.27.1", "0.28.0")),
    ],
)
def test_releases(version: str | None, exact: str | None, beside: tuple[str, ...]) -> None:
    assert known_release(version) == exact
    assert nearest_releases(version) == beside


@pytest.mark.parametrize(
    ("flag", "nearest"),
    [
        ("kv-cache-dtyp", "kv-cache-dtype"),
        ("max-num-seq", "max-num-seqs"),
        ("async-schedulin", "async-scheduling"),
        ("no-such-flag", None),
    ],
)
def test_unknown_flags(flag: str, nearest: str | None) -> None:
    assert is_unknown(flag, ("0.26.0",))
    assert nearest_flag(flag, ("0.26.0",)) == nearest


@pytest.mark.parametrize(
    "flag", ["max-num-seqs", "no-enable-prefix-caching", "speculative-config", "is-prefill-worker"]
)
def test_known_flags(flag: str) -> None:
    assert not is_unknown(flag, ("0.26.0",))
