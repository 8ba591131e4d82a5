"""The tensors of feed-forward blocks on a rank, dense and with experts."""

from __future__ import annotations

from collections.abc import Iterator

from generator.architecture import DenseMlp, MixtureOfExperts
from generator.units import ceil_div
from generator.weights.shards import Shards, split
from generator.weights.tensors import FP32_BYTES, Component, Tensor


def dense_mlp(mlp: DenseMlp, hidden: int, tensor: int, name: str) -> Iterator[Tensor]:
    """Gate and up in one matrix (or up alone), and down, split by columns."""
    component = Component.DENSE_MLP
    width = split(mlp.intermediate_size, tensor, "columns of the MLP")
    yield from _feed_forward(component, width, hidden, name, is_gated=mlp.is_gated)
    if mlp.has_bias:
        yield Tensor(component=component, rows=width * (2 if mlp.is_gated else 1) + hidden)


def _feed_forward(
    component: Component, width: int, hidden: int, name: str, *, is_gated: bool
) -> Iterator[Tensor]:
    parts = 2 if is_gated else 1
    up = tuple(f"{name}.{part}_proj" for part in ("up", "gate", "gate_up"))
    down = (f"{name}.down_proj",)
    yield Tensor(component=component, rows=parts * width, columns=hidden, parts=parts, modules=up)
    yield Tensor(component=component, rows=hidden, columns=width, modules=down)


def mixture_of_experts(
    mlp: MixtureOfExperts, hidden: int, shards: Shards, name: str
) -> Iterator[Tensor]:
    """Router, shared expert, projections to and from the latent, and routed experts."""
    yield from _router(mlp, hidden)
    if mlp.shared_expert_intermediate_size:
        ranks = 1 if shards.replicates_shared_expert else shards.tensor
        shared = split(mlp.shared_expert_intermediate_size, ranks, "columns of the shared expert")
        yield from _feed_forward(
            Component.SHARED_EXPERT,
            shared,
            hidden,
            f"{name}.shared_expert",
            is_gated=mlp.is_gated,
        )
    if mlp.latent_size is not None:
        for part, rows, columns in (
            ("fc1", mlp.latent_size, hidden),
            ("fc2", hidden, mlp.latent_size),
        ):
            modules = (f"{name}.{part}_latent_proj",)
            yield Tensor(component=Component.LATENT, rows=rows, columns=columns, modules=modules)
    yield from _routed_experts(mlp, mlp.latent_size or hidden, shards, f"{name}.experts")


def _router(mlp: MixtureOfExperts, hidden: int) -> Iterator[Tensor]:
    """The gates, whole on every rank and never quantised."""
    component = Component.ROUTER
    gate_bytes = FP32_BYTES if mlp.router_dtype == "float32" else None
    yield Tensor(
        component=component, rows=mlp.num_experts, columns=hidden, element_bytes=gate_bytes
    )
    if mlp.has_router_bias:
        yield Tensor(component=component, rows=mlp.num_experts, element_bytes=FP32_BYTES)
    if mlp.has_shared_expert_gate:
        yield Tensor(component=component, rows=1, columns=hidden)


def _routed_experts(
    mlp: MixtureOfExperts, hidden: int, shards: Shards, name: str
) -> Iterator[Tensor]:
    """Whole experts over the expert ranks, or a slice of every expert on each rank.

    Where the experts do not divide, vLLM gives the first ranks one more: the largest rank counts.
    """
    component = Component.ROUTED_EXPERTS
    width = split(mlp.moe_intermediate_size, shards.expert_slices, "columns of an expert")
    copies = ceil_div(mlp.num_experts, shards.expert)
    parts = 2 if mlp.is_gated else 1
    # The name of one expert stands for all of them: checkpoints quantise experts alike.
    up = tuple(f"{name}.0.{part}" for part in ("up_proj", "gate_proj", "w1", "w3"))
    down = tuple(f"{name}.0.{part}" for part in ("down_proj", "w2"))
    yield Tensor(
        component=component,
        rows=parts * width,
        columns=hidden,
        copies=copies,
        parts=parts,
        modules=up,
        input_scales=mlp.num_experts * parts,
    )
    yield Tensor(
        component=component,
        rows=hidden,
        columns=width,
        copies=copies,
        modules=down,
        input_scales=mlp.num_experts,
    )
    if shards.expert > 1:  # which rank holds which expert, as 32-bit integers
        yield Tensor(
            component=component,
            rows=mlp.num_experts,
            element_bytes=FP32_BYTES,
            is_engine_buffer=True,
        )
