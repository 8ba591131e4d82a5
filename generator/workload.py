"""Request lengths and benchmark loads, as the deployment is sized for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.errors import InvalidInput, Problem

_SA_BENCH_RANGE_RATIO = 0.8
_SA_BENCH_PROMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Token lengths of a request: ``isl`` in, ``osl`` out, the field's own abbreviations.

    ``random_range_ratio`` is the shortest length a load generator draws, as a share of these.
    """

    isl: int
    osl: int
    random_range_ratio: float = 1.0

    @property
    def request_tokens(self) -> int:
        """Tokens a finished request holds in the KV cache."""
        return self.isl + self.osl


def random_range_ratio(benchmark: Mapping[str, Any]) -> float:
    """The ratio a benchmark section asks for; sa-bench has a default, others draw no lengths.

    Raises ValueError for a value that is no share. Default: srt-slurm's sa-bench.
    """
    default = _SA_BENCH_RANGE_RATIO if benchmark.get("type") == "sa-bench" else 1.0
    ratio = benchmark.get("random_range_ratio")
    if ratio is None:
        return default
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
        raise ValueError(f"random_range_ratio must be a number from 0 to 1, got {ratio!r}")
    return float(ratio)


def prompts_per_concurrency(benchmark: Mapping[str, Any]) -> int:
    """Requests of a point for each of its concurrent ones; sa-bench's default where not said."""
    said = benchmark.get("num_prompts_mult")
    return said if isinstance(said, int) and said > 0 else _SA_BENCH_PROMPTS


def parse_concurrencies(value: int | str | list[int]) -> tuple[int, ...]:
    """Concurrencies as srt-slurm takes them: a list, one number, or ``64x128x256``."""
    if isinstance(value, int):
        return (value,)
    if isinstance(value, str):
        return tuple(int(part) for part in value.split("x"))
    return tuple(value)


def refuse_repeats(value: int | str | list[int]) -> None:
    """Raise InvalidInput for a load that is named twice: it would run twice."""
    loads = parse_concurrencies(value)
    twice = sorted({load for load in loads if loads.count(load) > 1})
    if twice:
        raise InvalidInput(
            Problem(
                message=f"names {', '.join(map(str, twice))} more than once",
                hint="name each concurrency once",
            )
        )


def format_concurrencies(concurrencies: tuple[int, ...]) -> str:
    """The one-string form recipes use: ``64x128x256``."""
    return "x".join(str(concurrency) for concurrency in concurrencies)
