"""From a spec to recipes: every flag of every role, with the arithmetic that gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from generator.architecture import ModelArchitecture
from generator.derivation.pairing import (
    PairingProblem,
    agree_on_block_tokens,
    pairing_problems,
    require_pairing,
    transfer_problems,
)
from generator.derivation.recipe_writing import WrittenRole, load_benchmark, write_recipe
from generator.derivation.role_flags import TRANSFER_FLAG, RoleFlags, RoleLoad, role_flags
from generator.engine.options import EngineOptions, options_from_flags
from generator.engine.plan import Engine, check_request_fits, plan_engine
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, PdBlockRule
from generator.recipe.recipe import Recipe
from generator.spec.placement import check_nodes, nodes_for_pool
from generator.spec.spec import DeploymentSpec, ProbeSpec, Spec

T = TypeVar("T")

_ROLES = ("prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A derived recipe, the engines it starts, and what its reader should be warned of."""

    spec: DeploymentSpec
    recipe: Recipe
    prefill: Engine
    decode: Engine
    warnings: tuple[PairingProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An aggregated engine, alone in a recipe, whose start-up tells what cannot be computed."""

    spec: ProbeSpec
    recipe: Recipe
    engine: Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """Everything a spec gives: its deployments and the probes beside them."""

    deployments: tuple[Deployment, ...]
    probes: tuple[Probe, ...]

    @property
    def engines(self) -> Iterator[Engine]:
        """The probes, then both engines of every deployment."""
        for probe in self.probes:
            yield probe.engine
        for deployment in self.deployments:
            yield deployment.prefill
            yield deployment.decode


def derive(spec: Spec, architecture: ModelArchitecture, defaults: EngineDefaults) -> Derivation:
    """All recipes and engines of a spec; raises InvalidInput with every problem of all of them."""
    problems: list[Problem] = []
    deployments: list[Deployment] = []
    probes: list[Probe] = []
    for deployment in spec.deployments:
        try:
            deployments.append(derive_deployment(spec, deployment, architecture, defaults))
        except InvalidInput as error:
            problems += _placed(spec, deployment.path, error)
    for probe in spec.probes:
        try:
            probes.append(derive_probe(spec, probe, architecture, defaults))
        except InvalidInput as error:
            problems += _placed(spec, probe.path, error, role=probe.role)
    if problems:
        raise InvalidInput(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
    return Derivation(deployments=tuple(deployments), probes=tuple(probes))


def derive_deployment(
    spec: Spec,
    deployment: DeploymentSpec,
    architecture: ModelArchitecture,
    defaults: EngineDefaults,
) -> Deployment:
    """The recipe and the engines of one deployment; raises InvalidInput with its problems."""
    return _DeploymentDerivation(spec, deployment, architecture, defaults).derive()


def _placed(
    spec: Spec,
    path: tuple[str | int, ...],
    error: InvalidInput,
    *,
    role: str = "",
    group: tuple[str | int, ...] = (),
) -> list[Problem]:
    """The problems of what ``path`` describes with their lines: a flag's own where it has one."""
    return [
        problem
        if problem.source
        else spec.document.problem(
            spec.place_of_flag(problem.path, role, group) or path, problem.message, problem.hint
        )
        for problem in error.problems
    ]


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
        nodes = self._of_roles(
            lambda role: nodes_for_pool(self._pools[role], spec.cluster.gpus_per_node)
        )
        check_nodes(nodes, spec.cluster)
        written = self._of_roles(self._role_flags)
        options = self._of_roles(lambda role: self._options(written[role]))
        problems = list(pairing_problems(self._architecture, options["prefill"], options["decode"]))
        for role in _ROLES:
            environment = spec.engine.environment[role]
            problems += transfer_problems(
                self._architecture, role, written[role].flags, environment
            )
        require_pairing(problems)
        engines = self._of_roles(lambda role: self._engine(role, options[role]))
        forced = agree_on_block_tokens(
            engines["prefill"].kv_cache, engines["decode"].kv_cache, self._block_rule()
        )
        if forced is not None:
            how = (
                f"max(prefill {engines['prefill'].kv_cache.block_tokens},"
                f" decode {engines['decode'].kv_cache.block_tokens}): KV transfer needs one size"
            )
            written = {role: written[role].with_block_size(forced, how) for role in _ROLES}
            engines = {role: self._force_block_size(engines[role], forced) for role in _ROLES}
        return Deployment(
            spec=deployment,
            recipe=write_recipe(
                spec,
                deployment.name,
                {
                    role: WrittenRole(
                        pool=self._pools[role],
                        nodes=nodes[role],
                        flags=written[role],
                        environment=spec.engine.environment[role],
                    )
                    for role in _ROLES
                },
                load_benchmark(deployment.benchmark, spec.workload, deployment.concurrencies),
                deployment.time_limit,
            ),
            prefill=engines["prefill"],
            decode=engines["decode"],
            warnings=tuple(problem for problem in problems if not problem.is_fatal),
        )

    def _block_rule(self) -> PdBlockRule:
        """How this release compares the blocks of two roles."""
        rule = (
            self._defaults.pd_block_rule_of_hybrids
            if self._architecture.is_hybrid
            else self._defaults.pd_block_rule_of_attention_only
        )
        return rule.value

    def _of_roles(self, step: Callable[[str], T]) -> dict[str, T]:
        """A step's result for both roles; raises InvalidInput with both roles' problems placed."""
        results: dict[str, T] = {}
        problems: list[Problem] = []
        for role in _ROLES:
            try:
                results[role] = step(role)
            except InvalidInput as error:
                place = self._deployment.place_of(role)
                group = self._deployment.path[:2]
                problems += _placed(self._spec, place, error, role=role, group=group)
        if problems:
            raise InvalidInput(problems)
        return results

    def _options(self, written: RoleFlags) -> EngineOptions:
        options = options_from_flags(written.flags)
        check_request_fits(options, self._spec.workload, self._architecture)
        return options

    def _role_flags(self, role: str) -> RoleFlags:
        tokens = getattr(self._deployment.speculative_tokens, role)
        if tokens and not self._architecture.draft_layers:
            raise InvalidInput(
                self._spec.document.problem(
                    (*self._deployment.path[:2], "mtp"),
                    f"mtp {tokens}: the checkpoint has no multi-token-prediction layers",
                    "write mtp: 0, or name a checkpoint that has them",
                )
            )
        deployment = self._deployment
        load = RoleLoad(
            pool=self._pools[role],
            num_speculative_tokens=tokens,
            concurrency=deployment.sizing_concurrency,
            own_concurrency=max(deployment.concurrencies, default=deployment.sizing_concurrency),
            group=deployment.group,
            sizing=deployment.sizing,
            rules=getattr(deployment.sizing, role),
        )
        return role_flags(self._spec.engine, role, load, self._spec.workload)

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


def derive_probe(
    spec: Spec, probe: ProbeSpec, architecture: ModelArchitecture, defaults: EngineDefaults
) -> Probe:
    """An aggregated engine sized as a worker of its role, and the recipe that starts it.

    Raises InvalidInput with what keeps the engine from starting or from being placed.
    """
    if probe.speculative_tokens and not architecture.draft_layers:
        raise InvalidInput(
            Problem(
                message=(
                    f"mtp {probe.speculative_tokens}: the checkpoint has no"
                    " multi-token-prediction layers"
                ),
                hint="write mtp: 0, or name a checkpoint that has them",
            )
        )
    load = RoleLoad(
        pool=probe.pool,
        num_speculative_tokens=probe.speculative_tokens,
        concurrency=probe.concurrency,
        own_concurrency=max(probe.concurrencies),
        group=probe.file,
        sizing=spec.sizing,
        rules=getattr(spec.sizing, probe.role),
    )
    written = role_flags(spec.engine, probe.role, load, spec.workload)
    # Nothing travels between the roles of an engine that has both.
    alone = {flag: value for flag, value in written.flags.items() if flag != TRANSFER_FLAG}
    options = options_from_flags(alone)
    nodes = nodes_for_pool(probe.pool, spec.cluster.gpus_per_node)
    check_nodes({"probe": nodes}, spec.cluster)
    for workload in (spec.workload, probe.workload):
        check_request_fits(options, workload, architecture)
    role = WrittenRole(
        pool=probe.pool,
        nodes=nodes,
        flags=replace(written, flags=alone),
        environment=spec.engine.environment[probe.role],
    )
    benchmark = load_benchmark(probe.benchmark, probe.workload, probe.concurrencies)
    return Probe(
        spec=probe,
        recipe=write_recipe(spec, probe.name, {"agg": role}, benchmark, probe.time_limit),
        engine=plan_engine(probe.file, "agg", probe.pool, options, architecture, defaults),
    )
