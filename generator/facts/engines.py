"""What an engine does where a recipe says nothing, by release and GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from generator.engine_version import release
from generator.errors import InvalidInput, Problem
from generator.facts.fact import Fact, fact_of, load_data
from generator.facts.gpus import Gpu
from generator.units import parse_bytes
from generator.wording import did_you_mean

FILE = "engine_defaults.yaml"


class PdBlockRule(StrEnum):
    """How the KV transfer compares the kernel blocks of a prefill and a decode engine."""

    EQUAL_KERNEL_BLOCKS = "equal_kernel_blocks"
    DECODE_MULTIPLE_OF_PREFILL = "decode_multiple_of_prefill"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBlocks:
    """The cache blocks an attention backend's kernels run on, in tokens.

    Either a list of sizes or every multiple of one.
    """

    sizes_tokens: tuple[int, ...] = ()
    multiple_tokens: int | None = None

    @property
    def smallest_tokens(self) -> int:
        return self.multiple_tokens or min(self.sizes_tokens)

    def within(self, block_tokens: int) -> int | None:
        """The kernel block that tiles a cache block of ``block_tokens``, None where none does.

        The block itself if the kernels take it, else the largest size that divides it (vLLM source
        v1/worker/utils.py at 0.26.0). This is what a prefill/decode handshake compares.
        """
        if self.multiple_tokens is not None:
            return block_tokens if block_tokens % self.multiple_tokens == 0 else None
        return max((size for size in self.sizes_tokens if block_tokens % size == 0), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDefaults:
    """What an engine does where nothing is said, for one release and GPU.

    ``resolved_version`` is the newest release whose source was read and that is not above the one
    asked for. Names are those of ``vllm serve`` where it has a flag; ``batched_moe`` are the
    all-to-all backends that have a ``max_num_batched_tokens`` of their own.
    """

    engine: str
    version: str | None
    resolved_version: str
    is_exact_version: bool
    gpu_memory_utilization: Fact[float]
    cudagraph_estimate_subtracted: Fact[bool]
    max_num_seqs: Fact[int]
    max_num_batched_tokens: Fact[int]
    batched_moe_backends: Fact[tuple[str, ...]]
    max_num_batched_tokens_of_batched_moe: Fact[int]
    prefix_caching_of_hybrids: Fact[bool]
    prefix_caching_of_attention_only: Fact[bool]
    max_cudagraph_capture_size: Fact[int]
    cudagraph_mode: Fact[str]
    all2all_backend: Fact[str]
    sequence_parallel_moe_backends: Fact[tuple[str, ...]]
    attention_backend: Fact[str]
    mla_attention_backend: Fact[str]
    kernel_blocks: Fact[Mapping[str, KernelBlocks]]
    mla_hybrid_kernel_block: Fact[int]
    pd_block_rule_of_hybrids: Fact[PdBlockRule]
    pd_block_rule_of_attention_only: Fact[PdBlockRule]


def engine_defaults(engine: str, version: str | None, gpu: Gpu) -> EngineDefaults:
    """The defaults of an engine release on a GPU; ``version`` None means the newest known.

    A pre-release or development build counts as the release it leads to. Raises InvalidInput for
    an unknown engine, text that is no version, or a release older than any in the data.
    """
    data = engine_data(engine)
    resolved = _resolve_version(version, data["verified_versions"])
    chosen = {
        key: _default(key, _applicable(entries, resolved, version, gpu))
        for key, entries in data["defaults"].items()
    }
    return EngineDefaults(
        engine=engine,
        version=version,
        resolved_version=resolved,
        is_exact_version=version is not None and _public_part(version) == resolved,
        **chosen,
    )


@cache
def engine_data(engine: str) -> Mapping[str, Any]:
    """The data file of an engine; raises InvalidInput for an engine that has none."""
    data: Mapping[str, Any] = load_data(FILE)
    if engine != data["engine"]:
        hint = did_you_mean(engine, [data["engine"]]) or f"known: {data['engine']}"
        raise InvalidInput(Problem(message=f"engine '{engine}' is not known", hint=hint))
    for key, entries in data["defaults"].items():
        if fault := _fault(entries, data["verified_versions"]):
            raise InvalidInput(Problem(message=fault, source=FILE, path=f"defaults.{key}"))
    return data


def _fault(entries: list[Mapping[str, Any]], verified: list[str]) -> str:
    """What is wrong with a default's entries; they must cover every release and GPU."""
    since = [entry["since"] for entry in entries]
    if verified != sorted(verified, key=release) or since != sorted(since, key=release):
        return "releases must rise"
    if since[0] != verified[0] or not set(since) <= set(verified):
        return "must start at the first verified release and change only at one"
    following = [*since[1:], ""]
    for entry, own, after in zip(entries, since, following, strict=True):
        if ("when" in entry) is not (own == after):
            return f"of the entries since {own} all but the last need a condition"
    return ""


def _resolve_version(version: str | None, verified: list[str]) -> str:
    """The newest verified release that is not above ``version``."""
    if version is None:
        return verified[-1]
    asked = release(version)
    not_above = [known for known in verified if release(known) <= asked]
    if not not_above:
        raise InvalidInput(
            Problem(
                message=f"engine version {version} is older than any known",
                hint=f"the oldest is {verified[0]}",
            )
        )
    return not_above[-1]


def _public_part(version: str) -> str:
    return version.removeprefix("v").partition("+")[0]


def _applicable(
    entries: list[Mapping[str, Any]], resolved: str, version: str | None, gpu: Gpu
) -> Mapping[str, Any]:
    asked = release(resolved)
    since = max(release(entry["since"]) for entry in entries if release(entry["since"]) <= asked)
    return next(
        entry
        for entry in entries
        if release(entry["since"]) == since and _holds(entry.get("when", {}), version, gpu)
    )


def _holds(condition: Mapping[str, Any], version: str | None, gpu: Gpu) -> bool:
    """Whether a GPU and, for what only one nightly does, the exact version meet a condition."""
    is_build = condition.get("build", version) == version
    least = condition.get("gpu_memory_at_least")
    major = condition.get("compute_capability_major", gpu.compute_capability[0])
    has_memory = least is None or gpu.memory_inventory_bytes >= parse_bytes(least)
    return is_build and has_memory and bool(major == gpu.compute_capability[0])


def _default(key: str, entry: Mapping[str, Any]) -> Fact[Any]:
    value = entry["value"]
    if key == "kernel_blocks":
        return fact_of(entry, MappingProxyType({k: _kernel_blocks(v) for k, v in value.items()}))
    if key.startswith("pd_block_rule"):
        return fact_of(entry, PdBlockRule(value))
    return fact_of(entry, tuple(value) if isinstance(value, list) else value)


def _kernel_blocks(value: list[int] | str) -> KernelBlocks:
    if isinstance(value, str):
        return KernelBlocks(multiple_tokens=int(value.rpartition(" ")[2]))
    return KernelBlocks(sizes_tokens=tuple(value))
