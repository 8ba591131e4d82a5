"""Which flags `vllm serve` has, by release, and what Dynamo's worker adds to them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache

from generator.engine_version import release
from generator.facts.fact import load_data

_FILE = "vllm_flags.yaml"
_RELEASE_ALONE = re.compile(r"v?\d+\.\d+(\.\d+)?(\+.*)?\Z")
_DYNAMO_PREFIXES = ("dyn-", "multimodal-", "enable-multimodal", "gms-")
_DYNAMO_FLAGS = frozenset(
    {
        "connector",
        "custom-jinja-template",
        "disaggregation-mode",
        "discovery-backend",
        "durable-kv-events",
        "enable-local-indexer",
        "endpoint",
        "event-plane",
        "is-decode-worker",
        "is-prefill-worker",
        "migration-limit",
        "namespace",
        "request-plane",
        "route-to-encoder",
        "sleep-mode-level",
        "store-kv",
        "use-vllm-tokenizer",
    }
)


@cache
def flag_tables() -> Mapping[str, frozenset[str]]:
    """Every long flag without its dashes, ``no-`` forms included, by release, oldest first."""
    data = load_data(_FILE)
    tables: dict[str, set[str]] = {version: set() for version in data["versions"]}
    for group in data["flags"]:
        switches = group.get("switches", "").split()
        names = {*group.get("options", "").split(), *switches}
        names |= {f"no-{switch}" for switch in switches}
        for version in group["in"]:
            tables[version] |= names
    return {version: frozenset(names) for version, names in tables.items()}


def known_release(version: str | None) -> str | None:
    """The release of the tables that a version is; None for any other and for its builds."""
    if version is None or not _RELEASE_ALONE.match(version):
        return None
    asked = release(version)
    return next((each for each in flag_tables() if release(each) == asked), None)


def nearest_releases(version: str | None) -> tuple[str, ...]:
    """The releases of the tables beside a version that is none of them; all without a version."""
    every = tuple(flag_tables())
    if version is None:
        return every
    asked = release(version)
    below = [each for each in every if release(each) <= asked][-1:]
    above = [each for each in every if release(each) > asked][:1]
    return tuple(below + above)


@cache
def is_unknown(flag: str, releases: tuple[str, ...]) -> bool:
    """Whether none of these releases has a flag, in dashes, and Dynamo's worker has it neither."""
    if flag in _DYNAMO_FLAGS or flag.startswith(_DYNAMO_PREFIXES):
        return False
    return not any(flag in flag_tables()[each] for each in releases)


@cache
def nearest_flag(flag: str, releases: tuple[str, ...]) -> str | None:
    """The flag of these releases that is spelled most like one they lack."""
    known = sorted(set[str]().union(*(flag_tables()[each] for each in releases)))
    near = difflib.get_close_matches(flag, known, n=1, cutoff=0.75)
    return near[0] if near else None


def in_words(releases: Iterable[str]) -> str:
    """Releases as a message names them."""
    return " and ".join(releases)
