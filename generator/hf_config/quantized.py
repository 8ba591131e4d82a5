"""The quantisation of a checkpoint, from either place that may describe it."""

from __future__ import annotations

import re
from dataclasses import replace

from generator.architecture import Quantization, WeightFormat
from generator.hf_config.fields import Fields
from generator.quantization import DEFAULT_GROUP_SIZE, format_of_dtype

# ModelOpt's algorithm names. Per-channel FP8 differs from per-tensor FP8 by one scale a row.
_MODELOPT_FORMATS = {
    "NVFP4": WeightFormat.NVFP4,
    "W4A16_NVFP4": WeightFormat.NVFP4,
    "FP8": WeightFormat.FP8,
    "FP8_PER_CHANNEL_PER_TOKEN": WeightFormat.FP8,
    "FP8_PB_WO": WeightFormat.FP8_BLOCK,
}
_KV_CACHE_DTYPES = {"FP8": "fp8", "NVFP4": "nvfp4"}
_KNOWN_METHODS = "known are modelopt (NVFP4, FP8), compressed-tensors (NVFP4, MXFP4, FP8) and fp8"


def quantization_from_fields(
    root: Fields, text: Fields, quant: Fields, *, dtype: str
) -> Quantization | None:
    """The quantisation, None for a checkpoint in its model dtype throughout.

    ``quant`` holds hf_quant_config.json, which counts only where config.json has nothing, as in
    vLLM. ``dtype`` is what a checkpoint with nothing but a KV scheme stores its weights in.
    """
    for fields in (root, text):
        if "quantization_config" in fields:
            block = fields.child("quantization_config")
            return None if block is None else _from_config_block(block, dtype)
    if "quantization" in quant:
        block = quant.child("quantization")
        return None if block is None else _from_separate_file(quant, block, dtype)
    if quant.raw("quant_method") is not None or "quant_algo" in quant:
        return _from_config_block(quant, dtype)
    return None


def _from_separate_file(quant: Fields, block: Fields, dtype: str) -> Quantization | None:
    """ModelOpt's own file; without its producer entry vLLM does not take over the KV scheme.

    Source: vLLM 0.26.0's sizing code, which gives the FP8 checkpoint of Nemotron-3-Super, whose
    file names no producer, a KV cache of the model dtype.
    """
    found = _from_modelopt(block, dtype)
    producer = quant.child("producer")
    is_named = producer is not None and producer.raw("name") == "modelopt"
    return found if is_named or found is None else replace(found, kv_cache_dtype=None)


def _from_config_block(block: Fields, dtype: str) -> Quantization | None:
    nested = block.child("quantization")
    if nested is not None:
        return _from_modelopt(nested, dtype)
    method = block.text("quant_method", default="modelopt" if "quant_algo" in block else None)
    if method.startswith("modelopt") or "quant_algo" in block:
        return _from_modelopt(block, dtype)
    if method == "compressed-tensors":
        return _from_compressed_tensors(block)
    if method == "fp8":
        return _from_fp8(block)
    if method:
        message = f"quantisation method '{method}' is not modelled"
        block.note("quant_method", message, _KNOWN_METHODS)
    return None


def _from_modelopt(block: Fields, dtype: str) -> Quantization | None:
    linear_format = format_of_dtype(dtype)
    if "quant_algo" in block:
        algorithm = block.text("quant_algo").upper()
        found = _MODELOPT_FORMATS.get(algorithm)
        if found is None and block.usable("quant_algo"):
            message = f"quantisation method '{algorithm}' is not modelled"
            block.note("quant_algo", message, _KNOWN_METHODS)
        linear_format = found or linear_format
    group_size = DEFAULT_GROUP_SIZE.get(linear_format)
    if linear_format is WeightFormat.NVFP4:
        group_size = block.integer("group_size", default=group_size)
    return Quantization(
        linear_format=linear_format,
        group_size=group_size,
        excluded_modules=_patterns(block, "exclude_modules", "ignore"),
        kv_cache_dtype=_modelopt_kv_cache_dtype(block),
    )


def _modelopt_kv_cache_dtype(block: Fields) -> str | None:
    if "kv_cache_quant_algo" not in block:
        return _kv_cache_scheme_dtype(block)
    algorithm = block.text("kv_cache_quant_algo").upper()
    if algorithm not in _KV_CACHE_DTYPES and block.usable("kv_cache_quant_algo"):
        block.note(
            "kv_cache_quant_algo",
            f"KV cache scheme '{algorithm}' is not modelled",
            f"known are {', '.join(_KV_CACHE_DTYPES)}",
        )
    return _KV_CACHE_DTYPES.get(algorithm)


def _kv_cache_scheme_dtype(block: Fields) -> str | None:
    """The KV dtype of a compressed-tensors scheme: 8-bit floats or nothing."""
    scheme = block.child("kv_cache_scheme")
    if scheme is None:
        return None
    if scheme.raw("type") == "float" and scheme.raw("num_bits") == 8:
        return "fp8"
    block.note("kv_cache_scheme", "only 8-bit floats are modelled", 'num_bits 8, type "float"')
    return None


def _from_fp8(block: Fields) -> Quantization:
    group_size = _block_side(block, "weight_block_size")
    return Quantization(
        linear_format=WeightFormat.FP8 if group_size is None else WeightFormat.FP8_BLOCK,
        group_size=group_size,
        excluded_modules=_patterns(block, "modules_to_not_convert", "ignored_layers"),
    )


def _from_compressed_tensors(block: Fields) -> Quantization | None:
    groups = block.child("config_groups")
    if groups is None:
        if block.usable("config_groups"):
            block.note("config_groups", "is missing", "it says how each group is stored")
        return None
    formats = [_group_format(groups, name) for name in groups.names()]
    known = {stored for stored in formats if stored is not None}
    if len(known) > 1 or not formats:
        block.note("config_groups", "must agree on one format", "mixed precision is not modelled")
    if len(known) != 1:
        return None
    linear_format, group_size = known.pop()
    return Quantization(
        linear_format=linear_format,
        group_size=group_size,
        excluded_modules=_patterns(block, "ignore"),
        kv_cache_dtype=_kv_cache_scheme_dtype(block),
    )


def _group_format(groups: Fields, name: str) -> tuple[WeightFormat, int | None] | None:
    group = groups.child(name)
    weights = None if group is None else group.child("weights")
    if group is None or weights is None:
        if group is not None and group.usable("weights"):
            group.note("weights", "is missing", "it says how the weights are stored")
        return None
    if group.raw("targets") != ["Linear"]:
        group.note("targets", 'only the target "Linear" is modelled', _KNOWN_METHODS)
        return None
    size = weights.raw("group_size")
    match weights.raw("type"), weights.raw("num_bits"), weights.raw("strategy"):
        case "float", 4, _ if size in (16, 32):
            stored_as = WeightFormat.NVFP4 if size == 16 else WeightFormat.MXFP4
            return stored_as, weights.integer("group_size")
        case "float", 8, "block":
            return WeightFormat.FP8_BLOCK, _block_side(weights, "block_structure")
        case "float", 8, "tensor" | "channel":
            return WeightFormat.FP8, None
    what = f"{weights.raw('num_bits')}-bit {weights.raw('type')} weights"
    group.note("weights", f"quantisation to {what} is not modelled", _KNOWN_METHODS)
    return None


def _block_side(block: Fields, name: str) -> int | None:
    """The side of square scale blocks, None where the field is not set."""
    sides = block.integers(name)
    if name not in block or not block.usable(name):
        return None
    if len(sides) != 2 or sides[0] != sides[1] or sides[0] < 1:
        block.note(name, "must be two equal positive integers", "such as [128, 128]")
        return None
    return sides[0]


def _patterns(block: Fields, *names: str) -> tuple[str, ...]:
    patterns: list[str] = []
    for name in names:
        for index, pattern in enumerate(block.texts(name)):
            if pattern.startswith("re:") and not _compiles(pattern[3:]):
                block.note(f"{name}[{index}]", "is not a regular expression")
            else:
                patterns.append(pattern)
    return tuple(patterns)


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True
