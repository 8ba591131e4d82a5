"""Which flags a spec may set: none that has an owner, and each in one place and one spelling."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from generator.documents import Document
from generator.errors import Problem
from generator.facts.vllm_flags import (
    in_words,
    is_unknown,
    known_release,
    nearest_flag,
    nearest_releases,
)
from generator.spec.spec import FieldPath

ARGUMENT_SECTIONS = ("args", "prefill_args", "decode_args")

# Written by the layout or the group's mtp: a second source could only disagree.
_OWNED_BY_PDRECIPE = {
    "tensor-parallel-size": "the layout",
    "pipeline-parallel-size": "the layout",
    "data-parallel-size": "the layout",
    "decode-context-parallel-size": "the layout",
    "enable-expert-parallel": "the layout",
    "speculative-config": "the group's mtp",
    "speculative-config.method": "the group's mtp",
    "speculative-config.num-speculative-tokens": "the group's mtp",
}
# Flags srtctl sets itself for every worker (srt-slurm facts): a recipe must not carry them.
OWNED_BY_SRTCTL = (
    "data-parallel-size-local",
    "data-parallel-start-rank",
    "data-parallel-hybrid-lb",
    "headless",
    "host",
    "port",
    "master-addr",
    "nnodes",
    "node-rank",
)


def flag_problems(
    document: Document, sections: Mapping[FieldPath, Collection[str]], engine_version: str | None
) -> Iterator[Problem]:
    """What is wrong with the flags of a spec's sections, such as ``("sizing", "decode")``.

    ``engine_version`` is None where the spec has no usable one: then flags of any release do.
    """
    for path, flags in sections.items():
        for flag in flags:
            yield from _owner_problems(document, (*path, flag), flag)
            yield from _unknown_problems(document, (*path, flag), flag, engine_version)
    yield from dict.fromkeys(_repetitions(document, sections))


def _owner_problems(document: Document, path: FieldPath, flag: str) -> Iterator[Problem]:
    spelled = _one_spelling(flag)
    if owner := _OWNED_BY_PDRECIPE.get(spelled):
        hint = "remove it here and set it there"
        yield document.problem(path, f"'{flag}' is written from {owner}", hint)
    elif spelled in OWNED_BY_SRTCTL:
        message = f"'{flag}' is set by srtctl for every worker"
        yield document.problem(path, message, "remove it")


def _unknown_problems(
    document: Document, path: FieldPath, flag: str, engine_version: str | None
) -> Iterator[Problem]:
    """A flag the release does not have; of a version between releases only an evident slip.

    A flag that neither neighbour of a nightly has may be new in it, unless it is one letter off.
    """
    name = flag.replace("_", "-").partition(".")[0]
    exact = known_release(engine_version)
    releases = (exact,) if exact else nearest_releases(engine_version)
    if not is_unknown(name, releases):
        return
    nearest = nearest_flag(name, releases)
    if exact or nearest:
        hint = f"did you mean '{nearest}'?" if nearest else "remove it, or name another version"
        message = f"'{flag}' is no flag of vllm serve {in_words(releases)}"
        yield document.problem(path, message, hint)


def _repetitions(
    document: Document, sections: Mapping[FieldPath, Collection[str]]
) -> Iterator[Problem]:
    """Flags of one role that two sections set, but for a section made to go over another."""
    for layers in _layers(sections):
        first: dict[str, FieldPath] = {}
        for path in layers:
            for flag in sections.get(path, ()):
                here: FieldPath = (*path, flag)
                other = first.setdefault(_one_spelling(flag), here)
                goes_over = other[-1] == flag and (other[0] == "engine") == (path[0] == "engine")
                if other != here and not goes_over:
                    message = f"'{flag}' is already set on line {document.line(other)}"
                    yield document.problem(here, message, "set it in one place")


def _layers(sections: Mapping[FieldPath, Collection[str]]) -> Iterator[tuple[FieldPath, ...]]:
    """The sections one role's flags come from, later over earlier: for each group and role."""
    groups = sorted({path[:2] for path in sections if path[0] == "groups"})
    for role in ("prefill", "decode"):
        shared: tuple[FieldPath, ...] = (
            ("engine", "args"),
            ("engine", f"{role}_args"),
            ("sizing", role),
        )
        yield shared
        for group in groups:
            yield (*shared, (*group, "sizing", role))


def _one_spelling(flag: str) -> str:
    return flag.replace("_", "-").removeprefix("no-")
