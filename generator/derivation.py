"""From a spec to recipes: every flag of every role, with the arithmetic that gives it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generator.architecture import ModelArchitecture
from generator.engine_options import EngineOptions, options_from_flags
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults
from generator.kv_cache import KvCacheLayout, align_mode_problem, plan_kv_cache
from generator.pairing import (
    PairingProblem,
    agree_on_block_tokens,
    pairing_problems,
    require_pairing,
)
from generator.parallel import WorkerPool
from generator.placement import check_nodes, nodes_for_pool
from generator.recipe import FieldPath, Recipe, Role
from generator.resolution import ResolvedEngine, kv_cache_options, resolve_engine
from generator.sizing import Derived, Term, evaluate
from generator.spec import DeploymentSpec, ProbeSpec, SizingRules, Spec
from generator.workload import format_concurrencies

_ROLES = ("prefill", "decode")
_LENGTHS = ("isl", "osl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One kind of worker, as it will be started.

    ``unforced_kv_cache`` is the layout the engine would choose by itself where a block size is
    forced on it, None where none is.
    """

    name: str
    role: str
    pool: WorkerPool
    options: EngineOptions
    resolved: ResolvedEngine
    kv_cache: KvCacheLayout
    unforced_kv_cache: KvCacheLayout | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A derived recipe, the engines it starts, and what its reader should be warned of."""

    spec: DeploymentSpec
    recipe: Recipe
    prefill: Engine
    decode: Engine
    warnings: tuple[PairingProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """Everything a spec gives: its deployments and the probes beside them."""

    deployments: tuple[Deployment, ...]
    probes: tuple[Engine, ...]

    @property
    def engines(self) -> Iterator[Engine]:
        """The probes, then both engines of every deployment."""
        yield from self.probes
        for deployment in self.deployments:
            yield deployment.prefill
            yield deployment.decode


def derive(spec: Spec, architecture: ModelArchitecture, defaults: EngineDefaults) -> Derivation:
    """All recipes and engines of a spec; raises InvalidInput with every problem of all of them."""
    problems: list[Problem] = []
    deployments: list[Deployment] = []
    probes: list[Engine] = []
    for deployment in spec.deployments:
        try:
            deployments.append(
                _DeploymentDerivation(spec, deployment, architecture, defaults).derive()
            )
        except InvalidInput as error:
            problems += _placed(spec, deployment.path, error)
    for probe in spec.probes:
        try:
            probes.append(_derive_probe(spec, probe, architecture, defaults))
        except InvalidInput as error:
            problems += _placed(spec, probe.path, error)
    if problems:
        raise InvalidInput(dict.fromkeys(problems))
    return Derivation(deployments=tuple(deployments), probes=tuple(probes))


def plan_engine(
    name: str,
    role: str,
    pool: WorkerPool,
    options: EngineOptions,
    architecture: ModelArchitecture,
    defaults: EngineDefaults,
) -> Engine:
    """An engine with its limits resolved and its KV cache laid out.

    Raises InvalidInput where the engine would refuse these options.
    """
    resolved = resolve_engine(architecture, options, defaults)
    flags = kv_cache_options(architecture, options, defaults)
    kv_cache = plan_kv_cache(architecture, flags)
    problem = align_mode_problem(kv_cache, resolved.max_num_batched_tokens)
    if problem is not None:
        raise InvalidInput(replace(problem, message=f"{role}: {problem.message}"))
    return Engine(
        name=name,
        role=role,
        pool=pool,
        options=options,
        resolved=resolved,
        kv_cache=kv_cache,
        unforced_kv_cache=(
            plan_kv_cache(architecture, replace(flags, block_size=None))
            if options.block_size is not None
            else None
        ),
    )


def _placed(spec: Spec, path: tuple[str | int, ...], error: InvalidInput) -> list[Problem]:
    """The problems of one deployment with the line of the spec that describes it."""
    return [
        spec.document.problem(path, problem.message, problem.hint) for problem in error.problems
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoleFlags:
    """Flags of one role in the order they are written, and the comments on some of them."""

    flags: Mapping[str, Any]
    comments: Mapping[str, str] = field(default_factory=dict)


class _DeploymentDerivation:
    """One deployment: sizes both roles, pairs them, places them, and writes the recipe."""

    def __init__(
        self,
        spec: Spec,
        deployment: DeploymentSpec,
        architecture: ModelArchitecture,
        defaults: EngineDefaults,
    ) -> None:
        self._spec = spec
        self._deployment = deployment
        self._architecture = architecture
        self._defaults = defaults
        self._pools = {"prefill": deployment.prefill, "decode": deployment.decode}

    def derive(self) -> Deployment:
        spec, deployment = self._spec, self._deployment
        nodes = {
            role: nodes_for_pool(pool, spec.cluster.gpus_per_node)
            for role, pool in self._pools.items()
        }
        check_nodes(nodes, spec.cluster)
        written = {role: self._role_flags(role) for role in _ROLES}
        options = {role: options_from_flags(written[role].flags) for role in _ROLES}
        for role in _ROLES:
            check_request_fits(options[role], spec, self._architecture, role)
        problems = list(pairing_problems(self._architecture, options["prefill"], options["decode"]))
        require_pairing(problems)
        engines = {role: self._engine(role, options[role]) for role in _ROLES}
        forced = agree_on_block_tokens(engines["prefill"].kv_cache, engines["decode"].kv_cache)
        if forced is not None:
            how = (
                f"max(prefill {engines['prefill'].kv_cache.block_tokens},"
                f" decode {engines['decode'].kv_cache.block_tokens}): KV transfer needs one size"
            )
            written = {role: _with_block_size(written[role], forced, how) for role in _ROLES}
            engines = {role: self._force_block_size(engines[role], forced) for role in _ROLES}
        return Deployment(
            spec=deployment,
            recipe=self._recipe(nodes, written),
            prefill=engines["prefill"],
            decode=engines["decode"],
            warnings=tuple(problem for problem in problems if not problem.is_fatal),
        )

    def _role_flags(self, role: str) -> _RoleFlags:
        tokens = getattr(self._deployment.speculative_tokens, role)
        if tokens and not self._architecture.draft_layers:
            raise InvalidInput(
                Problem(
                    message=f"mtp {tokens}: the checkpoint has no multi-token-prediction layers",
                    hint="write mtp: 0, or name a checkpoint that has them",
                )
            )
        return role_flags(
            spec=self._spec,
            role=role,
            pool=self._pools[role],
            sizing=self._deployment.sizing,
            num_speculative_tokens=tokens,
            concurrency=self._deployment.sizing_concurrency,
        )

    def _engine(self, role: str, options: EngineOptions) -> Engine:
        return plan_engine(
            f"{self._deployment.file}/{role}",
            role,
            self._pools[role],
            options,
            self._architecture,
            self._defaults,
        )

    def _force_block_size(self, engine: Engine, block_tokens: int) -> Engine:
        forced = self._engine(engine.role, replace(engine.options, block_size=block_tokens))
        if forced.kv_cache.block_tokens != block_tokens:
            raise InvalidInput(
                Problem(
                    message=(
                        f"no common block size: {engine.role} would raise {block_tokens} tokens"
                        f" to {forced.kv_cache.block_tokens}"
                    ),
                    hint="use tensor parallel sizes whose block sizes agree",
                )
            )
        return forced

    def _recipe(self, nodes: Mapping[str, Derived], written: Mapping[str, _RoleFlags]) -> Recipe:
        spec, deployment = self._spec, self._deployment
        comments: dict[FieldPath, str] = {}
        roles: list[Role] = []
        for role, pool in self._pools.items():
            comments["roles", role, "nodes"] = nodes[role].how
            comments["roles", role, "gpus"] = pool.layout.ranks_text
            for flag, how in written[role].comments.items():
                comments["roles", role, "args", flag] = how
            roles.append(
                Role(
                    name=role,
                    nodes=nodes[role].value,
                    workers=pool.workers,
                    gpus=pool.layout.ranks,
                    environment=spec.engine.environment[role],
                    args=written[role].flags,
                )
            )
        return Recipe(
            name=deployment.name,
            gpu_type=spec.cluster.gpu,
            gpus_per_node=spec.cluster.gpus_per_node,
            model=spec.model,
            engine=spec.engine.type,
            has_connector=spec.engine.has_connector,
            connector=spec.engine.connector,
            roles=tuple(roles),
            benchmark=self._benchmark(),
            identity=spec.identity,
            time_limit=deployment.time_limit,
            dynamo=spec.dynamo,
            frontend=spec.frontend,
            sections=spec.sections,
            comments=comments,
        )

    def _benchmark(self) -> Mapping[str, Any]:
        """The benchmark section; only a load benchmark has lengths and concurrencies."""
        spec, deployment = self._spec, self._deployment
        if not deployment.concurrencies:
            return deployment.benchmark
        kind = {key: value for key, value in deployment.benchmark.items() if key == "type"}
        return {
            **kind,
            **{key: getattr(spec.workload, key) for key in _LENGTHS},
            "concurrencies": format_concurrencies(deployment.concurrencies),
            **{key: value for key, value in deployment.benchmark.items() if key != "type"},
        }


def role_flags(
    *,
    spec: Spec,
    role: str,
    pool: WorkerPool,
    sizing: SizingRules,
    num_speculative_tokens: int,
    concurrency: int,
) -> _RoleFlags:
    """The engine flags of one role: layout, the spec's own, sized ones, speculation."""
    layout = pool.layout
    own = {flag: _flag_value(value) for flag, value in spec.engine.args[role].items()}
    transfer = {flag: own.pop(flag) for flag in ("kv-transfer-config",) if flag in own}
    parallel: dict[str, Any] = {
        "tensor-parallel-size": layout.tensor,
        "pipeline-parallel-size": layout.pipeline,
        "data-parallel-size": layout.data,
    }
    if layout.decode_context > 1:
        parallel["decode-context-parallel-size"] = layout.decode_context
    if layout.expert_parallel:
        parallel["enable-expert-parallel"] = True
    sized = _sized_flags(
        spec, getattr(sizing, role), pool, sizing, num_speculative_tokens, concurrency
    )
    speculation: dict[str, Any] = (
        {
            "speculative_config.method": "mtp",
            "speculative_config.num_speculative_tokens": num_speculative_tokens,
        }
        if num_speculative_tokens
        else {}
    )
    return _RoleFlags(
        flags={
            **transfer,
            **parallel,
            **own,
            **{flag: derived.value for flag, derived in sized.items()},
            **speculation,
        },
        comments={
            "tensor-parallel-size": f"layout {layout}",
            **{flag: derived.how for flag, derived in sized.items() if derived.how},
        },
    )


def _sized_flags(
    spec: Spec,
    rules: Mapping[str, int | str],
    pool: WorkerPool,
    sizing: SizingRules,
    num_speculative_tokens: int,
    concurrency: int,
) -> dict[str, Derived]:
    """Evaluate the sizing rules in order; each flag is a term for those after it."""
    terms = {
        "isl": _plain(spec.workload.isl),
        "osl": _plain(spec.workload.osl),
        "mtp": Term(value=num_speculative_tokens, text=f"{num_speculative_tokens} MTP"),
        "concurrency": _plain(concurrency),
        "ranks": Term(
            value=pool.data_ranks,
            text=f"({pool.data_ranks_text})" if pool.workers > 1 else pool.data_ranks_text,
        ),
        "workers": Term(value=pool.workers, text=f"{pool.workers} workers"),
        "headroom_sequences": _plain(sizing.headroom_sequences),
        "headroom_tokens": _plain(sizing.headroom_tokens),
    }
    sized: dict[str, Derived] = {}
    problems: list[Problem] = []
    for flag, formula in rules.items():
        try:
            sized[flag] = evaluate(formula, terms)
        except InvalidInput as error:
            problems += [
                replace(problem, message=f"{flag}: {problem.message}") for problem in error.problems
            ]
            continue
        terms[flag.replace("-", "_")] = _plain(sized[flag].value)
    if problems:
        raise InvalidInput(problems)
    return sized


def _plain(value: int) -> Term:
    return Term(value=value, text=str(value))


def _flag_value(value: Any) -> Any:
    """A flag as the engine takes it: a mapping becomes one line of JSON."""
    return json.dumps(value) if isinstance(value, dict) else value


def _with_block_size(written: _RoleFlags, block_tokens: int, how: str) -> _RoleFlags:
    return _RoleFlags(
        flags={**written.flags, "block-size": block_tokens},
        comments={**written.comments, "block-size": how},
    )


def check_request_fits(
    options: EngineOptions, spec: Spec, architecture: ModelArchitecture, role: str
) -> None:
    """Raise InvalidInput where a request of the workload is longer than the engine accepts."""
    needed = spec.workload.request_tokens
    limit = options.max_model_len or architecture.max_position_embeddings
    if needed > limit:
        label = "max-model-len" if options.max_model_len else "the model's context"
        raise InvalidInput(
            Problem(
                message=(
                    f"{role}: {label} {limit} is below ISL + OSL ="
                    f" {spec.workload.isl} + {spec.workload.osl} = {needed}"
                ),
                hint="raise max-model-len, with room for the chat template, or shorten the load",
            )
        )


def _derive_probe(
    spec: Spec, probe: ProbeSpec, architecture: ModelArchitecture, defaults: EngineDefaults
) -> Engine:
    """An aggregated engine sized as a decode worker of its load."""
    written = role_flags(
        spec=spec,
        role="decode",
        pool=probe.pool,
        sizing=spec.sizing,
        num_speculative_tokens=probe.speculative_tokens,
        concurrency=probe.concurrency,
    )
    options = options_from_flags(written.flags)
    check_nodes({"probe": nodes_for_pool(probe.pool, spec.cluster.gpus_per_node)}, spec.cluster)
    check_request_fits(options, spec, architecture, "probe")
    mtp = "mtp" if probe.speculative_tokens else "nomtp"
    name = f"probe-{str(probe.pool.layout).lower()}-{mtp}-cc{probe.concurrency}"
    return plan_engine(name, "agg", probe.pool, options, architecture, defaults)
