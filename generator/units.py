"""Sizes and their text: integers of bytes inside, units only where people read or write them."""

from __future__ import annotations

import re
from fractions import Fraction

KIB, MIB, GIB = 2**10, 2**20, 2**30

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)\Z")
_UNIT_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": 2**40,
}


def parse_bytes(text: str) -> int:
    """Bytes of a size with a unit; "141 GB" and "141 GiB" differ, a bare number is refused.

    >>> parse_bytes("276.62 GiB"), parse_bytes("180 GB")
    (297018463355, 180000000000)

    Raises ValueError for anything else.
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size with a unit such as '276.62 GiB' or '180 GB'")
    return round(Fraction(match["number"]) * _UNIT_BYTES[match["unit"]])


def gib(size_bytes: int | float) -> float:
    """A byte count in GiB, for printing only."""
    return size_bytes / GIB


def format_gib(size_bytes: int | float) -> str:
    """Two decimals of GiB, as vLLM logs print it: ``format_gib(2**30)`` is ``'1.00 GiB'``."""
    return f"{gib(size_bytes):.2f} GiB"


def format_count(value: float) -> str:
    """A request count to two decimals with thousands separated by commas."""
    return f"{value:,.2f}"


def format_gpu_hours(hours: float) -> str:
    """GPU-hours as plans show them: a fraction to two decimals, a whole number without.

    >>> format_gpu_hours(1504.0), format_gpu_hours(4 / 15)
    ('1,504', '0.27')
    """
    return f"{hours:,.0f}" if hours == round(hours) else f"{hours:,.2f}"


def ceil_div(numerator: int, denominator: int) -> int:
    """Exact integer ceiling of a quotient of non-negative integers."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """The least multiple of ``multiple`` that is at least ``value``."""
    return ceil_div(value, multiple) * multiple


DTYPE_BITS: dict[str, int | Fraction] = {
    "float32": 32,
    "fp32": 32,
    "bfloat16": 16,
    "bf16": 16,
    "float16": 16,
    "fp16": 16,
    "half": 16,
    "fp8": 8,
    "fp8_e4m3": 8,
    "fp8_e5m2": 8,
    "fp8_inc": 8,
    # 4-bit values plus one FP8 scale for each 16 of them: 4.5 bits, 0.5625 bytes.
    "nvfp4": Fraction(9, 2),
}


def elements_bytes(count: int, dtype: str) -> int:
    """Bytes of ``count`` elements of a dtype; raises KeyError for a dtype not in DTYPE_BITS."""
    return -(-count * DTYPE_BITS[dtype] // 8)
