"""The GPUs that a recipe allocates, by role: nodes times GPUs of a node, working or not."""

from __future__ import annotations

from generator.collection.unusable import Unusable
from generator.normal_form import NormalForm, default_value
from generator.recipe_engines import reserved_nodes
from generator.results.point import AllocatedGpus

_MOST = 10**6
_GPUS_PER_NODE = 4  # srt-slurm's default where a recipe leaves it out


def allocated_gpus(form: NormalForm) -> AllocatedGpus:
    """What a job of this recipe holds.

    Decode workers on the prefill nodes count with the GPUs they use, prefill with the rest. Nodes
    of services, frontends and clients are ``other``. Raises Unusable where it is no number, or 0.
    """
    per_node = _count(form, "resources", "gpus_per_node", default=_GPUS_PER_NODE)
    is_separate = any(
        form.get("roles", role, "nodes") is not None for role in ("prefill", "decode")
    )
    prefill = decode = aggregated = 0
    if is_separate:
        prefill = _nodes(form, "prefill") * per_node
        decode = _nodes(form, "decode") * per_node
        if form.get("roles", "decode", "nodes") == "colocate":
            decode = min(prefill, gpus_at_work(form, "decode"))
            prefill -= decode
    else:
        aggregated = (_nodes(form, "agg") or 1) * per_node
    gpu_type = form.get("resources", "gpu_type")
    found = AllocatedGpus(
        type=gpu_type.lower() if isinstance(gpu_type, str) else "unknown",
        prefill=prefill,
        decode=decode,
        aggregated=aggregated,
        other=reserved_nodes(form) * per_node,
    )
    if found.total - found.other < 1:
        raise Unusable("allocates no GPU to workers")
    return found


def gpus_at_work(form: NormalForm, role: str) -> int:
    """GPUs that the workers of a role use."""
    return _count(form, "roles", role, "workers", default=1) * gpus_per_worker(form, role)


def gpus_per_worker(form: NormalForm, role: str) -> int:
    """GPUs of one worker, shared out of its nodes where the recipe does not say.

    Raises Unusable for workers that have none by the recipe: no figure of theirs is one of a GPU.
    """
    default = default_value(form, ("roles", role, "gpus"))
    gpus = _count(form, "roles", role, "gpus", default=default if isinstance(default, int) else 0)
    if form.get("roles", role, "gpus") == 0 and _count(form, "roles", role, "workers", default=1):
        raise Unusable(f"roles.{role}.gpus is 0: its workers have no GPU")
    return gpus


def _nodes(form: NormalForm, role: str) -> int:
    if form.get("roles", role, "nodes") == "colocate":
        return 0
    return _count(form, "roles", role, "nodes", default=0)


def _count(form: NormalForm, *path: str, default: int) -> int:
    value = form.get(*path)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise Unusable(f"{'.'.join(path)} is {value!r}, not a count")
    return value
