"""Which batch sizes vLLM captures as CUDA graphs, and how many graphs that makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from generator.errors import InvalidInput, Problem
from generator.units import round_up


class CudaGraphMode(StrEnum):
    """vLLM's ``cudagraph_mode``: which batches run as FULL graphs, which as PIECEWISE ones."""

    NONE = "NONE"
    PIECEWISE = "PIECEWISE"
    FULL = "FULL"
    FULL_DECODE_ONLY = "FULL_DECODE_ONLY"
    FULL_AND_PIECEWISE = "FULL_AND_PIECEWISE"


# A decode batch is whole steps of all its sequences, so its FULL graphs are too.
_CAPTURES_DECODE_STEPS = frozenset(
    {CudaGraphMode.FULL, CudaGraphMode.FULL_DECODE_ONLY, CudaGraphMode.FULL_AND_PIECEWISE}
)
_MOST_CAPTURED_TOKENS = 2**20
_CAPTURES_PIECES = frozenset({CudaGraphMode.PIECEWISE, CudaGraphMode.FULL_AND_PIECEWISE})


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGraphPlan:
    """The sizes an engine captures, in tokens of a batch, ascending.

    ``listed_sizes`` is the list before speculative tokens are considered, ``capture_sizes`` the
    engine's resolved one. A size is captured as a FULL graph, a PIECEWISE one, both or neither.
    """

    listed_sizes: tuple[int, ...]
    capture_sizes: tuple[int, ...]
    full_sizes: tuple[int, ...]
    piecewise_sizes: tuple[int, ...]

    @property
    def graphs(self) -> int:
        """Graphs of all kinds."""
        return len(self.full_sizes) + len(self.piecewise_sizes)


def plan_cuda_graphs(
    mode: CudaGraphMode,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    default_max_size: int,
    max_capture_size: int | None = None,
    num_speculative_tokens: int = 0,
) -> CudaGraphPlan:
    """The graphs vLLM 0.26 captures under these flags.

    A decode step of one sequence is 1 + speculative tokens long. Without ``max_capture_size`` the
    largest size is twice the decode batch, at most ``default_max_size``; a token budget below it
    cuts it silently. Raises InvalidInput where no size holds one decode step.
    """
    step_tokens = 1 + num_speculative_tokens
    asked = (
        min(2 * max_num_seqs * step_tokens, default_max_size)
        if max_capture_size is None
        else max_capture_size
    )
    _require_positive(max_num_seqs, max_num_batched_tokens, asked)
    if mode is CudaGraphMode.NONE:
        return CudaGraphPlan(listed_sizes=(), capture_sizes=(), full_sizes=(), piecewise_sizes=())
    listed = tuple(_listed_sizes(_usable_largest(min(asked, max_num_batched_tokens))))
    sizes = _whole_steps(listed, step_tokens) if mode in _CAPTURES_DECODE_STEPS else listed
    decode_tokens = max_num_seqs * step_tokens
    decode_sizes = tuple(size for size in sizes if step_tokens <= size <= decode_tokens)
    return CudaGraphPlan(
        listed_sizes=listed,
        capture_sizes=sizes,
        full_sizes={
            CudaGraphMode.FULL: sizes,
            CudaGraphMode.FULL_DECODE_ONLY: decode_sizes,
            CudaGraphMode.FULL_AND_PIECEWISE: decode_sizes,
        }.get(mode, ()),
        piecewise_sizes=sizes if mode in _CAPTURES_PIECES else (),
    )


def _require_positive(
    max_num_seqs: int, max_num_batched_tokens: int, max_capture_size: int
) -> None:
    for flag, value in (
        ("max-num-seqs", max_num_seqs),
        ("max-num-batched-tokens", max_num_batched_tokens),
        ("max-cudagraph-capture-size", max_capture_size),
    ):
        if value < 1:
            raise InvalidInput(
                Problem(message=f"{flag} must be at least 1, got {value}", path=flag)
            )


def _usable_largest(largest: int) -> int:
    """``largest`` itself, unless listing the graphs up to it would only exhaust this machine."""
    if largest <= _MOST_CAPTURED_TOKENS:
        return largest
    raise InvalidInput(
        Problem(
            message=f"CUDA graphs of up to {largest} tokens are {largest // 16:,} captures",
            hint=f"lower max-cudagraph-capture-size to at most {_MOST_CAPTURED_TOKENS}",
            path="max-cudagraph-capture-size",
        )
    )


def _listed_sizes(largest: int) -> Iterator[int]:
    """1, 2 and 4, every 8 below 256, every 16 from there."""
    yield from (size for size in (1, 2, 4) if size <= largest)
    yield from range(8, min(largest + 1, 256), 8)
    yield from range(256, largest + 1, 16)


def _whole_steps(sizes: tuple[int, ...], step_tokens: int) -> tuple[int, ...]:
    """The sizes rounded up to whole steps; one that leaves the range is dropped."""
    largest = sizes[-1]
    rounded = {round_up(size, step_tokens) for size in sizes}
    kept = tuple(sorted(size for size in rounded if size <= largest))
    if kept:
        return kept
    raise InvalidInput(
        Problem(
            message=(
                f"no CUDA graph of at most {largest} tokens holds one decode step of"
                f" {step_tokens} tokens"
            ),
            hint=f"raise max-cudagraph-capture-size and max-num-batched-tokens to {step_tokens}",
        )
    )
