"""What a weight costs in each storage format, and which modules a checkpoint keeps wide."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from generator.architecture import Quantization, WeightFormat
from generator.units import ceil_div

_ELEMENT_BITS = {
    WeightFormat.BF16: 16,
    WeightFormat.FP16: 16,
    WeightFormat.FP32: 32,
    WeightFormat.FP8: 8,
    WeightFormat.FP8_BLOCK: 8,
    WeightFormat.NVFP4: 4,
    WeightFormat.MXFP4: 4,
}
DEFAULT_GROUP_SIZE = {
    WeightFormat.FP8_BLOCK: 128,
    WeightFormat.NVFP4: 16,
    WeightFormat.MXFP4: 32,
}
"""Side of the group or block that shares one scale, where a checkpoint does not say."""

_FORMAT_OF_DTYPE = {
    "bfloat16": WeightFormat.BF16,
    "float16": WeightFormat.FP16,
    "float32": WeightFormat.FP32,
}
MODEL_DTYPES = tuple(_FORMAT_OF_DTYPE)

# One checkpoint layout under many names: multimodal wrappers nest the decoder, Nemotron-H calls it
# backbone, MiniMax and Mixtral call the MoE block block_sparse_moe, DeepSeek numbers its shared
# experts in the plural.
_PREFIXES = ("model.language_model.", "language_model.model.", "backbone.")
_SPELLINGS = ((".block_sparse_moe", ".mlp"), ("shared_experts", "shared_expert"))


def format_of_dtype(dtype: str) -> WeightFormat:
    """The storage format of unquantised weights; raises KeyError for a name not in MODEL_DTYPES."""
    return _FORMAT_OF_DTYPE[dtype]


def bytes_per_parameter(stored_as: WeightFormat, group_size: int | None = None) -> Fraction:
    """Bytes of one parameter with its share of the group scales, exact.

    NVFP4: 4 bits and one FP8 scale for 16 values, 9/16 byte. MXFP4: 4 bits and one 8-bit exponent
    for 32. FP8 in blocks: one byte and one FP32 scale a block.
    """
    size = Fraction(_ELEMENT_BITS[stored_as], 8)
    group = _group(stored_as, group_size)
    if group is None:
        return size
    return size + (
        Fraction(4, group**2) if stored_as is WeightFormat.FP8_BLOCK else Fraction(1, group)
    )


def matrix_bytes(
    stored_as: WeightFormat, rows: int, columns: int, group_size: int | None = None
) -> int:
    """Bytes of a ``rows`` x ``columns`` weight with its group or block scales.

    NVFP4 has 4 bits a value and one FP8 scale for 16 of them, MXFP4 one 8-bit exponent for 32, FP8
    in blocks one byte a value and one FP32 scale a block. Groups run along the columns (the input
    features); a group or block begun counts whole.
    """
    size = ceil_div(rows * columns * _ELEMENT_BITS[stored_as], 8)
    group = _group(stored_as, group_size)
    if group is None:
        return size
    if stored_as is WeightFormat.FP8_BLOCK:
        return size + 4 * ceil_div(rows, group) * ceil_div(columns, group)
    return size + rows * ceil_div(columns, group)


def has_tensor_scales(stored_as: WeightFormat) -> bool:
    """Whether each matrix has an FP32 scale of its own, and one more for its input."""
    return stored_as in (WeightFormat.NVFP4, WeightFormat.FP8)


@dataclass(frozen=True, slots=True)
class ModulePatterns:
    """The exclusion patterns of one checkpoint, ready to match module names.

    A plain name matches itself, the modules under it, and itself behind any prefix (``lm_head``
    matches ``language_model.lm_head``); ``*`` and ``?`` match any text; ``re:`` starts a regular
    expression. The names asked for are ``model.layers.3.mlp.experts.0.up_proj`` and the like; the
    other spellings that checkpoints use for them are understood.
    """

    plain: frozenset[str]
    globs: re.Pattern[str] | None
    expressions: tuple[re.Pattern[str], ...]

    def match(self, name: str) -> bool:
        """Whether any pattern excludes the module ``name``."""
        if self.globs is not None and self.globs.fullmatch(name):
            return True
        if self.plain and any(part in self.plain for part in _dotted_parts(name)):
            return True
        return any(
            expression.match(spelling)
            for expression in self.expressions
            for spelling in _spellings(name)
        )


@lru_cache(maxsize=32)
def module_patterns(quantization: Quantization) -> ModulePatterns:
    """Compile the exclusion patterns; raises re.error for a ``re:`` pattern that is none."""
    patterns = quantization.excluded_modules
    plain = [_canonical(text) for text in patterns if not text.startswith("re:")]
    globs = [_glob_expression(text) for text in plain if "*" in text or "?" in text]
    return ModulePatterns(
        plain=frozenset(text for text in plain if "*" not in text and "?" not in text),
        globs=re.compile("|".join(globs)) if globs else None,
        expressions=tuple(re.compile(text[3:]) for text in patterns if text.startswith("re:")),
    )


def _canonical(pattern: str) -> str:
    for prefix in _PREFIXES:
        if pattern.startswith(prefix):
            pattern = "model." + pattern.removeprefix(prefix)
    for spelling, canonical in _SPELLINGS:
        pattern = pattern.replace(spelling, canonical)
    return pattern


def _glob_expression(pattern: str) -> str:
    text = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return rf"{text}(?:\..*)?"


def _dotted_parts(name: str) -> list[str]:
    """Every run of whole components: ``a.b.c`` gives a, a.b, a.b.c, b, b.c, c."""
    parts = name.split(".")
    ends = range(1, len(parts) + 1)
    return [".".join(parts[start:end]) for end in ends for start in range(end)]


def _spellings(name: str) -> list[str]:
    """The module as it stands and as every kind of checkpoint would write it."""
    names = [name, *(name.replace(mine, theirs) for theirs, mine in _SPELLINGS if mine in name)]
    if not name.startswith("model."):
        return names
    return names + [prefix + text.removeprefix("model.") for prefix in _PREFIXES for text in names]


def _group(stored_as: WeightFormat, group_size: int | None) -> int | None:
    """The side of a scale's group or block, None for formats without."""
    default = DEFAULT_GROUP_SIZE.get(stored_as)
    return default if default is None else group_size or default
