"""What a run held fixed, by dotted name: the recipe's part, and which versions count."""

from __future__ import annotations

from collections.abc import Mapping

from generator.normal_form import NormalForm, default_value

_PREFIX_CACHING = "enable-prefix-caching"
_NUMERICS = (
    "quantization",
    "dtype",
    "kv-cache-dtype",
    "mamba-cache-dtype",
    "mamba-ssm-cache-dtype",
)
CONTRACT_FLAGS = frozenset({*_NUMERICS, _PREFIX_CACHING, f"no-{_PREFIX_CACHING}"})
"""Engine flags that change what is computed or what is cached, not how fast it is."""

_FROM_RECIPE = {
    "model.path": ("model", "path"),
    "model.precision": ("model", "precision"),
    "model.repo": ("identity", "model", "repo"),
    "model.revision": ("identity", "model", "revision"),
    "benchmark.type": ("benchmark", "type"),
    "workload.isl": ("benchmark", "isl"),
    "workload.osl": ("benchmark", "osl"),
    "workload.random_range_ratio": ("benchmark", "random_range_ratio"),
    "workload.chat_template": ("benchmark", "use_chat_template"),
    "workload.dataset": ("benchmark", "dataset_name"),
    "load.request_rate": ("benchmark", "req_rate"),
    "load.prompts_per_concurrency": ("benchmark", "num_prompts_mult"),
    "frontend.type": ("frontend", "type"),
}
_PINNED = {"vllm.version": "vllm", "dynamo.version": "dynamo"}
_SA_BENCH = "sa-bench"


def recipe_contract(form: NormalForm, roles: tuple[str, ...]) -> dict[str, str]:
    """The recipe's part; defaults of srt-slurm are written out, what nothing says is left out."""
    said: dict[str, object] = {
        name: _with_default(form, path) for name, path in _FROM_RECIPE.items()
    }
    said["engine.name"] = _joined({role: form.engine_of(role) for role in roles})
    image = form.get("identity", "container", "image") or form.get("model", "container")
    said["container.image"] = image
    for flag in _NUMERICS:
        said[f"engine.{flag}"] = _joined({role: form.args(role).get(flag) for role in roles})
    said["engine.prefix_caching"] = _joined({role: _prefix_caching(form, role) for role in roles})
    if form.get("benchmark", "type") == _SA_BENCH:
        rounds = _with_default(form, ("benchmark", "num_warmup_mult"))
        said["load.warmup"] = f"excluded, {rounds} x concurrency" if rounds else "none"
    return {name: text_of(value) for name, value in sorted(said.items()) if value not in (None, "")}


def pinned_versions(form: NormalForm) -> dict[str, str]:
    """Versions that the recipe pins: what should run, where nothing tells what did."""
    found = {
        name: form.get("identity", "frameworks", framework) for name, framework in _PINNED.items()
    }
    if found["dynamo.version"] is None:
        found["dynamo.version"] = form.get("dynamo", "version") or form.get("dynamo", "hash")
    return {name: str(version) for name, version in found.items() if version is not None}


def versions_of_run(
    pinned: Mapping[str, str], logged: tuple[str, ...], locked: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """Versions by what is closest to the run: the lock, then the workers' logs, then the pins."""
    found = dict(pinned)
    if logged:
        found["vllm.version"] = ", ".join(logged)
    return found | {name: ", ".join(values) for name, values in locked.items()}


def _with_default(form: NormalForm, path: tuple[str, ...]) -> object:
    written = form.get(*path)
    return default_value(form, path) if written is None else written


def _prefix_caching(form: NormalForm, role: str) -> str | None:
    args = form.args(role)
    if args.get(f"no-{_PREFIX_CACHING}") is True:
        return "off"
    return "on" if args.get(_PREFIX_CACHING) is True else None


def _joined(by_role: Mapping[str, object]) -> str | None:
    """One value where all roles agree, else each with its role; None where none has one."""
    values = {role: value for role, value in by_role.items() if value not in (None, "", False)}
    if not values:
        return None
    if len(values) == len(by_role) and len(set(map(str, values.values()))) == 1:
        return text_of(next(iter(values.values())))
    return ", ".join(f"{role} {text_of(value)}" for role, value in values.items())


def text_of(value: object) -> str:
    """A value of a recipe as a contract or factor holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
