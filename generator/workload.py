"""Request lengths and benchmark loads, as the deployment is sized for them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Token lengths of a request: ``isl`` in, ``osl`` out, the field's own abbreviations."""

    isl: int
    osl: int

    @property
    def request_tokens(self) -> int:
        """Tokens a finished request holds in the KV cache."""
        return self.isl + self.osl


def parse_concurrencies(value: int | str | list[int]) -> tuple[int, ...]:
    """Concurrencies as srt-slurm takes them: a list, one number, or ``64x128x256``."""
    if isinstance(value, int):
        return (value,)
    if isinstance(value, str):
        return tuple(int(part) for part in value.split("x"))
    return tuple(value)


def format_concurrencies(concurrencies: tuple[int, ...]) -> str:
    """The one-string form recipes use: ``64x128x256``."""
    return "x".join(str(concurrency) for concurrency in concurrencies)
