"""The GPUs a deployment can run on: memory, topology, bandwidths and peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.facts.fact import Fact, facts_within, load_data
from generator.units import parse_bytes
from generator.wording import did_you_mean

_FILE = "gpus.yaml"
_RATES = {"GB/s": 10**9, "TB/s": 10**12, "TFLOPS": 10**12, "PFLOPS": 10**15}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU of its usual node.

    The three memory figures do not compare: the label is a name (``memory_nominal_bytes`` is
    smaller than the others although it is the "full" size), the inventory is what a driver
    reports, and ``engine_total`` is what the engine shares out. Peaks are dense, by precision;
    one that is absent is not supported. ``nvlink_bytes_per_second`` counts both directions.
    """

    name: str
    product: str
    memory_nominal_bytes: int
    memory_inventory_bytes: int
    engine_total: Fact[int]
    compute_capability: tuple[int, int]
    gpus_per_node: int
    nodes_per_nvlink_domain: int
    hbm_bytes_per_second: int
    nvlink_bytes_per_second: int
    peak_flops_per_second: Mapping[str, int]
    facts: Mapping[str, Fact[Any]]

    @property
    def gpus_per_nvlink_domain(self) -> int:
        return self.gpus_per_node * self.nodes_per_nvlink_domain

    @property
    def sm(self) -> str:
        """The compute capability as engines write it: ``SM103``."""
        return "SM" + "".join(map(str, self.compute_capability))


def gpu(name: str) -> Gpu:
    """The GPU of that name, in any case; raises InvalidInput for one that is not in the data."""
    known = _gpus()
    found = known.get(name.lower())
    if found is None:
        hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
        raise InvalidInput(Problem(message=f"GPU '{name}' is not known", hint=hint))
    return found


def gpu_names() -> tuple[str, ...]:
    """Every GPU in the data, newest first."""
    return tuple(_gpus())


@cache
def _gpus() -> Mapping[str, Gpu]:
    data = load_data(_FILE)["gpus"]
    return MappingProxyType({name: _gpu(name, entry) for name, entry in data.items()})


def _gpu(name: str, entry: Mapping[str, Any]) -> Gpu:
    facts = dict(facts_within(entry))
    peaks = {path.partition(".")[2]: fact for path, fact in facts.items() if "flops." in path}
    major, _, minor = facts["compute_capability"].value.partition(".")
    found = Gpu(
        name=name,
        product=entry["product"],
        memory_nominal_bytes=_bytes(facts["memory.nominal"]),
        memory_inventory_bytes=_bytes(facts["memory.inventory"]),
        engine_total=_in_bytes(facts["memory.engine_total"]),
        compute_capability=(int(major), int(minor)),
        gpus_per_node=facts["gpus_per_node"].value,
        nodes_per_nvlink_domain=facts["nodes_per_nvlink_domain"].value,
        hbm_bytes_per_second=_rate(facts["hbm_bandwidth"]),
        nvlink_bytes_per_second=_rate(facts["nvlink_bandwidth"]),
        peak_flops_per_second=MappingProxyType({key: _rate(fact) for key, fact in peaks.items()}),
        facts=MappingProxyType(facts),
    )
    if found.engine_total.value > found.memory_inventory_bytes:
        raise _faulty(name, "the engine cannot see more than the driver reports")
    rising = list(found.peak_flops_per_second.values())
    if rising != sorted(rising):
        raise _faulty(name, "narrower formats cannot be slower: write bf16, fp8, fp4")
    return found


def _bytes(fact: Fact[Any]) -> int:
    return parse_bytes(f"{fact.value} {fact.unit}")


def _in_bytes(fact: Fact[Any]) -> Fact[int]:
    return Fact(
        value=_bytes(fact),
        unit="B",
        source=fact.source,
        as_of=fact.as_of,
        basis=fact.basis,
        note=fact.note,
    )


def _rate(fact: Fact[Any]) -> int:
    return round(Fraction(str(fact.value)) * _RATES[fact.unit])


def _faulty(path: str, message: str) -> InvalidInput:
    return InvalidInput(Problem(message=message, source=_FILE, path=path))
