"""Which vLLM release a recipe pins, so that one answer serves every reader."""

from __future__ import annotations

from generator.engine_version import release
from generator.errors import InvalidInput
from generator.normal_form.form import NormalForm

_VLLM_IMAGE_TAG = "vllm-openai:v"


def pinned_vllm_version(form: NormalForm) -> str | None:
    """The release by the recipe's identity, or by the tag of vLLM's own image; None where neither.

    Tags of other images are not read: theirs may be the version of anything.
    """
    pinned = form.get("identity", "frameworks", "vllm")
    if isinstance(pinned, str) and _is_version(pinned):
        return pinned
    for path in (("model", "container"), ("identity", "container", "image")):
        image = form.get(*path)
        if isinstance(image, str) and _VLLM_IMAGE_TAG in image:
            tag = image.rpartition(_VLLM_IMAGE_TAG)[2].partition("-")[0]
            return tag if _is_version(tag) else None
    return None


def _is_version(text: str) -> bool:
    try:
        release(text)
    except InvalidInput:
        return False
    return True
