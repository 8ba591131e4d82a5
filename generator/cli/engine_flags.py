"""The engine flags that commands take in vLLM's spelling, to describe an engine without a spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_FLAG = "As vLLM's flag."
_OPTIONS = (
    click.option("--kv-cache-dtype", help=_FLAG),
    click.option("--mamba-ssm-cache-dtype", help=_FLAG),
    click.option("--mamba-cache-dtype", help=_FLAG),
    click.option("--max-model-len", type=click.IntRange(1), help=_FLAG),
    click.option("--max-num-seqs", type=click.IntRange(1), help=_FLAG),
    click.option("--max-num-batched-tokens", type=click.IntRange(1), help=_FLAG),
    click.option("--max-cudagraph-capture-size", type=click.IntRange(1), help=_FLAG),
    click.option("--cudagraph-mode", help="As in vLLM's compilation-config."),
    click.option("--gpu-memory-utilization", type=float, help=_FLAG),
    click.option("--block-size", type=click.IntRange(1), help=_FLAG),
    click.option("--all2all-backend", help=_FLAG),
    click.option("--attention-backend", help=_FLAG),
    click.option("--enable-prefix-caching/--no-enable-prefix-caching", default=None, help=_FLAG),
    click.option("--language-model-only", is_flag=True, default=None, help=_FLAG),
)


def engine_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every flag; those not given are None."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
