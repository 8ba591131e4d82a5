"""From the fields of a config.json to a ModelArchitecture, or to every reason why not."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from generator.architecture import ModelArchitecture, VisionTower
from generator.errors import InvalidInput, Problem
from generator.hf_config.families import FAMILIES, Decoder
from generator.hf_config.fields import Fields, Findings
from generator.hf_config.quantized import quantization_from_fields
from generator.hf_config.unmodelled import refuse_unmodelled
from generator.quantization import MODEL_DTYPES

QUANTIZATION_FILE = "hf_quant_config.json"


def architecture_from_config(
    config: dict[str, Any], quant: dict[str, Any] | None = None, *, source: str, name: str
) -> ModelArchitecture:
    """The architecture that a parsed config.json and hf_quant_config.json describe.

    ``source`` is the file's name for messages, ``name`` the model's. As in vLLM the
    ``quantization_config`` of config.json comes before ``quant``. Raises InvalidInput with all
    problems of the fields that are read, or with the layer types that are not modelled.
    """
    if not isinstance(config, dict):
        raise InvalidInput(Problem(message="must be a JSON object", source=source))
    findings = Findings(model=name, source=source)
    root = Fields(config, findings)
    text = root.child("text_config") or root
    if not root.usable("text_config"):
        findings.raise_any()
    refuse_unmodelled(text)
    decoder = _decoder(root, text, findings)
    dtype = _dtype(root, text)
    quant_source = str(PurePath(source).with_name(QUANTIZATION_FILE))
    quant_findings = Findings(model=name, source=quant_source)
    quantization = quantization_from_fields(
        root, text, Fields(quant or {}, quant_findings), dtype=dtype
    )
    hidden_size, vocab_size = text.integer("hidden_size"), text.integer("vocab_size")
    max_position_embeddings = text.integer("max_position_embeddings")
    tied = text if "tie_word_embeddings" in text else root
    tie_word_embeddings = tied.boolean("tie_word_embeddings")
    vision = _vision(root)
    findings.problems += quant_findings.problems
    findings.raise_any()
    return ModelArchitecture(
        name=name,
        model_type=(root if "model_type" in root else text).text("model_type"),
        hidden_size=hidden_size,
        vocab_size=vocab_size,
        max_position_embeddings=max_position_embeddings,
        dtype=dtype,
        layers=decoder.layers,
        tie_word_embeddings=tie_word_embeddings,
        recurrent_state_dtype=decoder.recurrent_state_dtype or (dtype if decoder.recurs else None),
        draft_layers=decoder.draft_layers,
        vision=vision,
        quantization=quantization,
    )


def _decoder(root: Fields, text: Fields, findings: Findings) -> Decoder:
    typed = text if "model_type" in text else root
    model_type = typed.text("model_type")
    family = FAMILIES.get(model_type)
    if family is not None:
        return family(text)
    if model_type and not findings.refusals:
        typed.refuse("model_type", f"{model_type} decoder layer")
    return Decoder()


def _dtype(root: Fields, text: Fields) -> str:
    """The model dtype; transformers 5 renamed torch_dtype, multimodal configs give it once."""
    places = [(fields, key) for fields in (text, root) for key in ("dtype", "torch_dtype")]
    fields, key = next(((fields, key) for fields, key in places if key in fields), (text, "dtype"))
    return fields.choice(key, MODEL_DTYPES)


def _vision(root: Fields) -> VisionTower | None:
    vision = root.child("vision_config")
    if vision is None:
        return None
    if "depth" in vision:
        return _qwen_vision(vision)
    if "vt_hidden_size" in vision:
        return _kimi_vision(vision)
    root.refuse("vision_config", "vision tower")
    return None


def _qwen_vision(vision: Fields) -> VisionTower:
    return VisionTower(
        depth=vision.integer("depth"),
        hidden_size=vision.integer("hidden_size"),
        intermediate_size=vision.integer("intermediate_size"),
        out_hidden_size=vision.integer("out_hidden_size"),
        patch_size=vision.integer("patch_size"),
        temporal_patch_size=vision.integer("temporal_patch_size"),
        in_channels=vision.integer("in_channels"),
        spatial_merge_size=vision.integer("spatial_merge_size"),
        num_position_embeddings=vision.integer("num_position_embeddings"),
        num_heads=vision.integer("num_heads"),
        num_deepstack_mergers=len(vision.items("deepstack_visual_indexes") or []),
    )


def _kimi_vision(vision: Fields) -> VisionTower:
    """MoonViT: one frame a patch, a learned square of positions, an unsharded projector."""
    if vision.text("mm_projector_type", default="patchmerger") != "patchmerger":
        vision.refuse("mm_projector_type", f"{vision.raw('mm_projector_type')} projector")
    merge = vision.integers("merge_kernel_size") or [2, 2]
    height, width = vision.integer("init_pos_emb_height"), vision.integer("init_pos_emb_width")
    return VisionTower(
        depth=vision.integer("vt_num_hidden_layers"),
        hidden_size=vision.integer("vt_hidden_size"),
        intermediate_size=vision.integer("vt_intermediate_size"),
        out_hidden_size=vision.integer("text_hidden_size"),
        patch_size=vision.integer("patch_size"),
        temporal_patch_size=1,
        in_channels=3,
        spatial_merge_size=max(merge),
        num_position_embeddings=height * width,
        num_heads=vision.integer("vt_num_attention_heads"),
        has_final_norm=True,
        has_replicated_projector=True,
    )
