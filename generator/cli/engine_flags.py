"""The engine flags that commands take in vLLM's spelling, to describe an engine without a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from generator.cli.number import Count

_FLAG = "As vLLM's flag."
_OPTIONS = (
    click.option("--kv-cache-dtype", help=_FLAG),
    click.option("--mamba-ssm-cache-dtype", help=_FLAG),
    click.option("--mamba-cache-dtype", help=_FLAG),
    click.option("--max-model-len", type=Count(), help=_FLAG),
    click.option("--max-num-seqs", type=Count(), help=_FLAG),
    click.option("--max-num-batched-tokens", type=Count(), help=_FLAG),
    click.option("--max-cudagraph-capture-size", type=Count(), help=_FLAG),
    click.option("--cudagraph-mode", help="As in vLLM's compilation-config."),
    click.option("--gpu-memory-utilization", type=float, help=_FLAG),
    click.option("--block-size", type=Count(), help=_FLAG),
    click.option("--all2all-backend", help=_FLAG),
    click.option("--attention-backend", help=_FLAG),
    click.option("--enable-prefix-caching/--no-enable-prefix-caching", default=None, help=_FLAG),
    click.option("--mamba-cache-mode", help=_FLAG),
    click.option("--mamba-block-size", type=Count(), help=_FLAG),
    click.option("--language-model-only", is_flag=True, default=None, help=_FLAG),
)


def engine_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every flag; those not given are None."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_flags(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, a switch turned off as the engine's own ``no_`` flag."""
    flags: dict[str, Any] = {}
    for name, value in options.items():
        if value is False:
            flags[f"no_{name}"] = True
        elif value is not None:
            flags[name] = value
    return flags
