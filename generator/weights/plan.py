"""What of a model's weights does not depend on the layout: layer kinds and storage formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from generator.architecture import Layer, ModelArchitecture, Quantization, WeightFormat
from generator.quantization import (
    format_of_dtype,
    has_tensor_scales,
    matrix_bytes,
    module_patterns,
)
from generator.weights.layers import layer_tensors
from generator.weights.shards import Shards
from generator.weights.tensors import FP32_BYTES, Tensor

_WHOLE = Shards()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """Layers of one shape and storage; ``wide_modules`` stay in the model dtype."""

    layer: Layer
    wide_modules: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """How quantised and other weights of a checkpoint are stored."""

    narrow: WeightFormat
    wide: WeightFormat
    group_size: int | None

    @property
    def is_quantized(self) -> bool:
        return self.narrow is not self.wide

    def tensor_bytes(self, tensor: Tensor, wide_modules: frozenset[str]) -> int:
        """Bytes of a tensor with its scales; ``wide_modules`` name what is not quantised."""
        if tensor.element_bytes is not None:
            return tensor.elements * tensor.element_bytes
        if not tensor.modules or tensor.modules[0] in wide_modules:
            return tensor.copies * matrix_bytes(self.wide, tensor.rows, tensor.columns)
        size = tensor.copies * matrix_bytes(
            self.narrow, tensor.rows, tensor.columns, self.group_size
        )
        if has_tensor_scales(self.narrow):
            weights = tensor.copies * tensor.parts
            inputs = weights if tensor.input_scales is None else tensor.input_scales
            size += FP32_BYTES * (weights + inputs)
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPlan:
    """The layer kinds of a model: ``kinds[kind_of_layer[i]]`` is layer i.

    ``kind_of_draft_layer`` does the same for the MTP layers, and ``is_joint_wide`` says whether
    the projection that feeds them stays in the model dtype.
    """

    storage: Storage
    kinds: tuple[LayerKind, ...]
    kind_of_layer: tuple[int, ...]
    kind_of_draft_layer: tuple[int, ...]
    is_joint_wide: bool
    is_hybrid: bool


@lru_cache(maxsize=32)
def plan_weights(architecture: ModelArchitecture) -> WeightPlan:
    """Sort the layers into kinds; milliseconds for a checkpoint with many exclusions."""
    quantization = architecture.quantization
    wide = format_of_dtype(architecture.dtype)
    narrow = quantization.linear_format if quantization else wide
    kinds: dict[LayerKind, int] = {}
    layers, draft_layers = (
        tuple(
            kinds.setdefault(
                LayerKind(layer=layer, wide_modules=_wide_modules(layer, names, quantization)),
                len(kinds),
            )
            for layer, names in named
        )
        for named in (_named_layers(architecture), _named_draft_layers(architecture))
    )
    return WeightPlan(
        storage=Storage(
            narrow=narrow, wide=wide, group_size=quantization.group_size if quantization else None
        ),
        kinds=tuple(kinds),
        kind_of_layer=layers,
        kind_of_draft_layer=draft_layers,
        is_joint_wide=_is_joint_wide(architecture),
        is_hybrid=architecture.is_hybrid,
    )


def _named_layers(architecture: ModelArchitecture) -> Iterator[tuple[Layer, tuple[str, ...]]]:
    for index, layer in enumerate(architecture.layers):
        yield layer, (f"model.layers.{index}",)


def _named_draft_layers(
    architecture: ModelArchitecture,
) -> Iterator[tuple[Layer, tuple[str, ...]]]:
    """MTP layers stand under ``mtp`` or behind the last decoder layer."""
    first = len(architecture.layers)
    for index, layer in enumerate(architecture.draft_layers):
        yield layer, (f"mtp.layers.{index}", f"model.layers.{first + index}")


def _wide_modules(
    layer: Layer, names: Iterable[str], quantization: Quantization | None
) -> frozenset[str]:
    """First module name of each tensor that the checkpoint keeps in the model dtype."""
    if quantization is None or not quantization.excluded_modules:
        return frozenset()
    patterns = module_patterns(quantization)
    return frozenset(
        tensor.modules[0]
        for tensor in layer_tensors(layer, 1, _WHOLE, is_quantized=False)
        if any(patterns.match(f"{name}.{module}") for name in names for module in tensor.modules)
    )


def _is_joint_wide(architecture: ModelArchitecture) -> bool:
    """Whether the MTP projection is unquantised.

    vLLM never quantises it for NVFP4 checkpoints, which store it wide without saying so, nor in
    its classes for DeepSeek and GLM, where it is a plain linear layer.
    """
    quantization = architecture.quantization
    if quantization is None or not architecture.is_hybrid:
        return True
    if quantization.linear_format is WeightFormat.NVFP4:
        return True
    patterns = module_patterns(quantization)
    return patterns.match("mtp.fc") or patterns.match("mtp.layers.0.eh_proj")
