"""The engine flags that decide memory and capacity, read from a recipe's or a command's flags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.parallel import ParallelLayout

_UNMODELLED_FLAGS = (
    "cpu-offload-gb",
    "cudagraph-capture-sizes",
    "compilation-config.cudagraph-capture-sizes",
    "dtype",
    "enable-dbo",
    "enable-eplb",
    "enable-lora",
    "hf-overrides",
    "kv-cache-dtype-skip-layers",
    "kv-offloading-size",
    "num-gpu-blocks-override",
    "prefill-context-parallel-size",
    "quantization",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What an engine was told; None means the engine's default applies.

    Names are those of ``vllm serve``. ``unmodelled_flags`` are those that make capacity figures
    other than the engine's. ``kv_cache_memory_bytes`` is per GPU and replaces the
    engine's own memory account.
    """

    layout: ParallelLayout
    num_speculative_tokens: int = 0
    kv_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    mamba_cache_dtype: str = "auto"
    mamba_cache_mode: str = "none"
    mamba_block_size: int | None = None
    enable_prefix_caching: bool | None = None
    block_size: int | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_cudagraph_capture_size: int | None = None
    cudagraph_mode: str | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    language_model_only: bool = False
    all2all_backend: str | None = None
    attention_backend: str | None = None
    hybrid_kv_cache_manager_disabled: bool = False
    unmodelled_flags: tuple[str, ...] = ()


def options_from_flags(flags: Mapping[str, Any]) -> EngineOptions:
    """Options from engine flags in either spelling (``max-num-seqs`` or ``max_num_seqs``).

    Nested settings are understood as dotted keys, mappings or JSON text. Flags that move memory,
    blocks or graphs in ways that are not modelled are named in ``unmodelled_flags``; the others do
    not bear on them. Raises InvalidInput with every flag whose value cannot be read.
    """
    return _FlagReader(flags).read()


class _FlagReader:
    def __init__(self, flags: Mapping[str, Any]) -> None:
        self._flags = _flatten(flags)
        self._problems: list[Problem] = []

    def read(self) -> EngineOptions:
        options = EngineOptions(
            layout=ParallelLayout(
                tensor=self._whole("tensor-parallel-size") or 1,
                pipeline=self._whole("pipeline-parallel-size") or 1,
                data=self._whole("data-parallel-size") or 1,
                decode_context=self._whole("decode-context-parallel-size") or 1,
                expert_parallel=self._switch("enable-expert-parallel") or False,
            ),
            num_speculative_tokens=self._whole("speculative-config.num-speculative-tokens", 0) or 0,
            kv_cache_dtype=self._word("kv-cache-dtype") or "auto",
            mamba_ssm_cache_dtype=self._word("mamba-ssm-cache-dtype") or "auto",
            mamba_cache_dtype=self._word("mamba-cache-dtype") or "auto",
            mamba_cache_mode=self._word("mamba-cache-mode") or "none",
            mamba_block_size=self._whole("mamba-block-size"),
            enable_prefix_caching=self._switch("enable-prefix-caching"),
            block_size=self._whole("block-size"),
            max_model_len=self._whole("max-model-len"),
            max_num_seqs=self._whole("max-num-seqs"),
            max_num_batched_tokens=self._whole("max-num-batched-tokens"),
            max_cudagraph_capture_size=self._whole("max-cudagraph-capture-size"),
            cudagraph_mode=self._graph_mode(),
            gpu_memory_utilization=self._share("gpu-memory-utilization"),
            kv_cache_memory_bytes=self._whole("kv-cache-memory-bytes"),
            language_model_only=self._switch("language-model-only") or False,
            all2all_backend=self._word("all2all-backend"),
            attention_backend=self._word("attention-backend"),
            hybrid_kv_cache_manager_disabled=self._switch("disable-hybrid-kv-cache-manager")
            or False,
            unmodelled_flags=self._unmodelled(),
        )
        if self._problems:
            raise InvalidInput(self._problems)
        return options

    def _unmodelled(self) -> tuple[str, ...]:
        """Flags, or the mappings they open, whose effect on memory no figure here contains."""
        return tuple(
            flag
            for flag in _UNMODELLED_FLAGS
            if any(
                given == flag or given.startswith(f"{flag}.")
                for given, value in self._flags.items()
                if value is not None and value is not False
            )
        )

    def _graph_mode(self) -> str | None:
        if self._switch("enforce-eager"):
            return "NONE"
        return self._word("compilation-config.cudagraph-mode") or self._word("cudagraph-mode")

    def _whole(self, flag: str, least: int = 1) -> int | None:
        value = self._flags.get(flag)
        if value is None:
            return None
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self._complain(flag, f"a whole number of at least {least}", value)
            return None
        return value

    def _share(self, flag: str) -> float | None:
        value = self._flags.get(flag)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            self._complain(flag, "a share above 0 and at most 1", value)
            return None
        return float(value)

    def _word(self, flag: str) -> str | None:
        value = self._flags.get(flag)
        if value is not None and not isinstance(value, str):
            self._complain(flag, "a word", value)
            return None
        return value

    def _switch(self, flag: str) -> bool | None:
        """A boolean flag; its ``no-`` form is its opposite.

        ``false`` counts as absent: srtctl leaves the flag out, and the engine's default holds.
        """
        for spelled, meaning in ((flag, True), (f"no-{flag}", False)):
            value = self._flags.get(spelled)
            if value is None or value is False:
                continue
            if value is not True:
                self._complain(spelled, "true or false", value)
                return None
            return meaning
        return None

    def _complain(self, flag: str, expected: str, value: Any) -> None:
        self._problems.append(
            Problem(path=flag, message=f"{flag} must be {expected}, got {value!r}")
        )


def _flatten(flags: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flags in one spelling: dashes for underscores, dots for nesting, JSON text opened."""
    flat: dict[str, Any] = {}
    for key, value in flags.items():
        name = prefix + str(key).replace("_", "-")
        nested = _as_mapping(value)
        if nested is None:
            flat[name] = value
        else:
            flat |= _flatten(nested, prefix=f"{name}.")
    return flat


def _as_mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            opened = json.loads(value)
        except (ValueError, RecursionError):
            return None
        return opened if isinstance(opened, dict) else None
    return None
