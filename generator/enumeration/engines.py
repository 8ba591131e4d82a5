"""Which engines of a role are legal: each layout, drafts and KV-cache dtype, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from generator.architecture import MultiHeadLatentAttention
from generator.capacity.memory_terms import computed_weights
from generator.engine.options import EngineOptions
from generator.engine.resolution import kv_cache_options
from generator.engine_version import release
from generator.enumeration.layouts import layouts_within
from generator.enumeration.legal_engine import ROLES, Engines, Kind, LegalEngine
from generator.enumeration.rejection import Reason, Rejection
from generator.enumeration.role_sizes import RoleSizes, role_sizes, sequence_grid
from generator.enumeration.subject import Subject
from generator.errors import InvalidInput, Problem
from generator.kv_cache.kv_cache import KvCacheLayout, plan_kv_cache
from generator.kv_cache.options import KvCacheOptions
from generator.parallel import ParallelLayout, WorkerPool
from generator.spec.placement import nodes_for_pool
from generator.units import format_gib

_REASONS = {
    "tensor": Reason.HEADS,
    "decode_context": Reason.CONTEXT,
    "pipeline": Reason.PIPELINE,
}
_PREFILL_SIZES = (1,)


def enumerate_engines(judge: Judge) -> Engines:
    """Every engine of both roles, judged as ``generate`` and ``capacity`` would.

    Raises InvalidInput where the spec's own flags or rules are refused whatever the layout.
    """
    subject = judge.subject
    legal: list[LegalEngine] = []
    rejections: list[Rejection] = []
    has_experts = subject.architecture.experts is not None
    for layout in layouts_within(subject.gpus_per_engine, has_experts=has_experts):
        for verdict in judge.verdicts(layout):
            if isinstance(verdict, Rejection):
                rejections.append(verdict)
            else:
                legal.append(verdict)
    return Engines(legal=tuple(legal), rejections=tuple(rejections))


class Judge:
    """Says which engines of a subject are legal, and keeps the answers that layouts share."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._sizes: dict[tuple[str, Kind, bool], RoleSizes] = {}
        self._kv_caches: dict[KvCacheOptions, KvCacheLayout | InvalidInput] = {}

    @cached_property
    def _kinds(self) -> tuple[Kind, ...]:
        return tuple(
            Kind(kv_cache_dtype=dtype, speculative_tokens=tokens)
            for dtype in self.subject.specs
            for tokens in self.subject.speculative_tokens
        )

    def verdicts(self, layout: ParallelLayout) -> Iterator[LegalEngine | Rejection]:
        """Cheap questions first: one answer for all kinds and roles where it is the same."""
        refused = self._refusal(layout)
        if refused is not None:
            yield refused
            return
        for role in ROLES:
            if refusal := self._role_refusal(role, layout):
                yield refusal
                continue
            for kind in self._kinds:
                yield self._engine(role, kind, layout)

    def verdict(self, role: str, kind: Kind, layout: ParallelLayout) -> LegalEngine | Rejection:
        """The verdict on one engine."""
        refused = self._refusal(layout) or self._role_refusal(role, layout)
        return refused or self._engine(role, kind, layout)

    def _refusal(self, layout: ParallelLayout) -> Rejection | None:
        """Why a layout is refused whatever its role and kind."""
        return (
            self._domain(layout)
            or self._placement(layout)
            or self._transfer(layout)
            or self._shared_context(layout)
        )

    def _role_refusal(self, role: str, layout: ParallelLayout) -> Rejection | None:
        """Why a layout is refused in a role, whatever its kind."""
        if role == "decode" or layout.decode_context == 1:
            return None
        return self._rejection(
            layout, Reason.PREFILL_CONTEXT, _NO_CONTEXT, len(self._kinds), role=role
        )

    def _rejection(
        self,
        layout: ParallelLayout,
        reason: Reason,
        problem: Problem,
        engines: int,
        *,
        role: str | None = None,
        numbers: tuple[int, int] | None = None,
    ) -> Rejection:
        needed, available = numbers or (None, None)
        return Rejection(
            layout=layout,
            reason=reason,
            problem=problem,
            engines=engines,
            role=role,
            needed=needed,
            available=available,
        )

    def _domain(self, layout: ParallelLayout) -> Rejection | None:
        most = self.subject.gpus_per_engine
        if layout.ranks <= most:
            return None
        problem = Problem(
            message=f"{layout} takes {layout.ranks_text} = {layout.ranks} GPUs, there are {most}",
            hint="an engine stays inside one NVLink domain: use a smaller layout",
        )
        return self._rejection(
            layout,
            Reason.DOMAIN,
            problem,
            len(ROLES) * len(self._kinds),
            numbers=(layout.ranks, most),
        )

    def _placement(self, layout: ParallelLayout) -> Rejection | None:
        per_node = self.subject.gpus_per_node
        try:
            nodes_for_pool(WorkerPool(workers=1, layout=layout), per_node)
        except InvalidInput as error:
            return self._rejection(
                layout,
                Reason.PLACEMENT,
                error.problems[0],
                len(ROLES) * len(self._kinds),
                numbers=(layout.replica_ranks, per_node),
            )
        return None

    def _transfer(self, layout: ParallelLayout) -> Rejection | None:
        if layout.pipeline == 1 or not self.subject.architecture.is_hybrid:
            return None
        return self._rejection(
            layout,
            Reason.PIPELINE_TRANSFER,
            _NO_PIPELINE_TRANSFER,
            len(ROLES) * len(self._kinds),
            numbers=(layout.pipeline, 1),
        )

    def _shared_context(self, layout: ParallelLayout) -> Rejection | None:
        """Context ranks hold blocks of one sequence, which the transfer has to tell apart.

        For latent attention alone, whole tensor groups only, and since vLLM pull request 50611.
        """
        context, subject = layout.decode_context, self.subject
        if context == 1:
            return None
        is_latent = isinstance(subject.architecture.attention, MultiHeadLatentAttention)
        is_recent = release(subject.defaults.resolved_version) >= _FIRST_WITH_SHARED_CONTEXT
        if is_latent and not subject.architecture.is_hybrid and is_recent:
            if context == layout.tensor:
                return None
            problem = _PARTLY_SHARED_CONTEXT
        else:
            problem = _NO_SHARED_CONTEXT
        return self._rejection(
            layout,
            Reason.CONTEXT_TRANSFER,
            problem,
            len(ROLES) * len(self._kinds),
            numbers=(context, 1),
        )

    def _engine(self, role: str, kind: Kind, layout: ParallelLayout) -> LegalEngine | Rejection:
        sizes = self._sizes_of(role, kind, layout)
        options = replace(sizes.options[0], layout=layout)
        try:
            kv_cache = self._kv_cache(options)
            weights = computed_weights(
                self.subject.architecture, options, self.subject.defaults
            ).bytes_per_rank
        except InvalidInput as error:
            problem = error.problems[0]
            reason = _REASONS.get(problem.path)
            if reason is None:
                reason = Reason.OTHER if problem.path else Reason.WEIGHT_SHARES
            return _of_kind(self._rejection(layout, reason, problem, 1, role=role), kind)
        engine = LegalEngine(
            role=role,
            kind=kind,
            layout=layout,
            options=options,
            kv_cache=kv_cache,
            weights_bytes_per_rank=weights,
            sizes=sizes,
        )
        refused = self._memory(engine)
        return engine if refused is None else _of_kind(refused, kind)

    def _sizes_of(self, role: str, kind: Kind, layout: ParallelLayout) -> RoleSizes:
        """The sizes of a role; a token budget that is not sized may be another under EP and DP."""
        is_sized = "max-num-batched-tokens" in getattr(self.subject.spec.sizing, role)
        key = (role, kind, not is_sized and layout.expert_parallel and layout.data > 1)
        if key not in self._sizes:
            self._sizes[key] = role_sizes(
                self.subject,
                self.subject.specs[kind.kv_cache_dtype],
                role,
                kind.speculative_tokens,
                sample=layout,
                sequences=_PREFILL_SIZES if role == "prefill" else sequence_grid(),
            )
        return self._sizes[key]

    def _kv_cache(self, options: EngineOptions) -> KvCacheLayout:
        flags = kv_cache_options(self.subject.architecture, options, self.subject.defaults)
        if flags not in self._kv_caches:
            try:
                self._kv_caches[flags] = plan_kv_cache(self.subject.architecture, flags)
            except InvalidInput as error:
                self._kv_caches[flags] = error
        found = self._kv_caches[flags]
        if isinstance(found, InvalidInput):
            raise found
        return found

    def _memory(self, engine: LegalEngine) -> Rejection | None:
        """What the smallest engine of a layout lacks: room for weights, or for one request."""
        sizes = engine.sizes
        room = int(sizes.kv_cache_bytes(engine.weights_bytes_per_rank)[0])
        if room <= 0:
            needed = sizes.requested_bytes - room
            problem = Problem(
                message=(
                    f"{engine.layout} needs {format_gib(needed)} of a GPU before any KV cache,"
                    f" {format_gib(engine.weights_bytes_per_rank)} of it weights; the engine may"
                    f" use {format_gib(sizes.requested_bytes)}"
                ),
                hint="use more GPUs per replica, or expert parallelism",
            )
            numbers = (needed, sizes.requested_bytes)
            return self._rejection(
                engine.layout, Reason.MEMORY, problem, 1, role=engine.role, numbers=numbers
            )
        blocks = engine.kv_cache.num_blocks(room)
        request = engine.kv_cache.blocks_per_request(sizes.max_model_len)
        if blocks >= request:
            return None
        problem = Problem(
            message=(
                f"one request of max-model-len {sizes.max_model_len} needs {request} KV-cache"
                f" blocks, {engine.layout} has {blocks}"
            ),
            hint=(
                "shorten the workload and max-model-len to"
                f" {engine.kv_cache.longest_request_tokens(room)} tokens, or use more GPUs"
            ),
        )
        return self._rejection(
            engine.layout,
            Reason.REQUEST,
            problem,
            1,
            role=engine.role,
            numbers=(request, blocks),
        )


def _of_kind(rejection: Rejection, kind: Kind) -> Rejection:
    return replace(
        rejection,
        speculative_tokens=kind.speculative_tokens,
        kv_cache_dtype=kind.kv_cache_dtype,
    )


_FIRST_WITH_SHARED_CONTEXT = release("0.29.0")
_NO_SHARED_CONTEXT = Problem(
    message=(
        "the KV transfer takes decode context parallelism with latent attention only, without"
        " recurrent layers and from vLLM 0.29"
    ),
    hint="use DCP 1",
)
_PARTLY_SHARED_CONTEXT = Problem(
    message="the KV transfer takes a decode context of one rank, or of all tensor ranks",
    hint="use DCP 1, or as many as TP",
)
_NO_CONTEXT = Problem(
    message="decode context parallelism shares out the tokens of sequences that decode",
    hint="use it on decode",
)
_NO_PIPELINE_TRANSFER = Problem(
    message="pipeline parallelism of a hybrid model is not supported on the transfer path",
    hint="use PP1 on both roles",
)
