"""Measured start-ups: the memory terms an engine printed for one exact configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from generator.documents import Document, read_document
from generator.errors import InvalidInput, Problem
from generator.facts.fact import DATA, load_data
from generator.facts.gpus import gpu
from generator.units import parse_bytes
from generator.validation import validate


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileKey:
    """What decides an engine's start-up memory; profiles are found by all of it, exactly.

    ``model`` is ``ModelArchitecture.signature``; ``gpu`` is a name of ``gpu_names``.
    """

    engine: str
    engine_version: str
    model: str
    gpu: str
    tensor: int
    data: int
    pipeline: int
    expert_parallel: bool
    num_speculative_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int
    cudagraph_mode: str
    max_cudagraph_capture_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredProfile:
    """What one start-up printed, per GPU.

    ``graph_reserved`` is the engine's estimate, which decides the KV cache; ``graph_used`` is what
    capture took, None where the log ends before it. ``file`` is the user's file it was read from.
    """

    key: ProfileKey
    name: str
    engine_total_bytes: int
    gpu_memory_utilization: float
    cuda_context_bytes_per_rank: int
    non_torch_bytes_per_rank: int
    weights_bytes_per_rank: int
    peak_activation_bytes_per_rank: int
    graph_reserved_bytes_per_rank: int
    graph_used_bytes_per_rank: int | None
    kv_cache_bytes_per_rank: int
    source: str
    as_of: str
    file: str = field(default="", compare=False)


@cache
def measured_profiles() -> tuple[MeasuredProfile, ...]:
    """Every profile that comes with the package."""
    files = sorted((DATA / "measured").glob("*.yaml"))
    return tuple(
        profile for file in files for profile in _profiles(load_data(f"measured/{file.name}"))
    )


def read_profiles(path: Path, source: str | None = None) -> tuple[MeasuredProfile, ...]:
    """The profiles in a user's file; ``source`` is what messages call it.

    Raises InvalidInput with every problem of the file: what the schema refuses, else an unknown
    GPU or two runs with one key.
    """
    document = read_document(path, source)
    validate(document, "measured-profile")
    if problems := list(_profile_problems(document)):
        raise InvalidInput(problems)
    return tuple(replace(each, file=str(path)) for each in _profiles(document.data))


def find_profile(
    key: ProfileKey, profiles: Iterable[MeasuredProfile] | None = None
) -> MeasuredProfile | None:
    """The first profile with exactly this key, in the package's own unless others are given."""
    candidates = measured_profiles() if profiles is None else profiles
    return next((profile for profile in candidates if profile.key == key), None)


def _profiles(data: Mapping[str, Any]) -> Iterator[MeasuredProfile]:
    return (_profile(data, run) for run in data["runs"])


def _key(data: Mapping[str, Any], run: Mapping[str, Any]) -> ProfileKey:
    return ProfileKey(
        engine=data["engine"],
        engine_version=data["engine_version"],
        model=data["model"],
        gpu=data["gpu"],
        **run["layout"],
        num_speculative_tokens=run["num_speculative_tokens"],
        max_num_seqs=run["max_num_seqs"],
        max_num_batched_tokens=run["max_num_batched_tokens"],
        cudagraph_mode=run["cudagraph_mode"],
        max_cudagraph_capture_size=run["max_cudagraph_capture_size"],
    )


def _profile(data: Mapping[str, Any], run: Mapping[str, Any]) -> MeasuredProfile:
    sizes = {term: parse_bytes(size) for term, size in run["memory"].items()}
    return MeasuredProfile(
        key=_key(data, run),
        name=run["name"],
        engine_total_bytes=parse_bytes(data["engine_total"]),
        gpu_memory_utilization=data["gpu_memory_utilization"],
        cuda_context_bytes_per_rank=sizes["cuda_context"],
        non_torch_bytes_per_rank=sizes["non_torch"],
        weights_bytes_per_rank=sizes["weights"],
        peak_activation_bytes_per_rank=sizes["peak_activation"],
        graph_reserved_bytes_per_rank=sizes["graph_reserved"],
        graph_used_bytes_per_rank=sizes.get("graph_used"),
        kv_cache_bytes_per_rank=sizes["kv_cache"],
        source=run.get("source", data["source"]),
        as_of=run.get("as_of", data["as_of"]),
    )


def _profile_problems(document: Document) -> Iterator[Problem]:
    data = document.data
    try:
        gpu(data["gpu"])
    except InvalidInput as error:
        problem = error.problems[0]
        yield document.problem(("gpu",), problem.message, problem.hint)
    seen: dict[ProfileKey, int] = {}
    for index, run in enumerate(data["runs"]):
        first = seen.setdefault(_key(data, run), index)
        if first != index:
            message = f"has the same settings as '{data['runs'][first]['name']}'"
            yield document.problem(("runs", index), message, "keep one of them")
