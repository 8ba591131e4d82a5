"""What a measured point says of the time its phases take."""

from __future__ import annotations

from collections.abc import Iterator

from generator.bounds.phase_work import PhaseWork, PrefillWork, decode_step_work, prefill_work
from generator.efficiency.factors import Phase
from generator.efficiency.fit import Observation, Says
from generator.efficiency.measured_engines import MeasuredEngines
from generator.errors import InvalidInput, Problem
from generator.results.distribution import Distribution
from generator.results.point import MeasuredPoint
from generator.workload import Workload

_WAITING_BATCHES = 2
"""Batches in flight from which a prefill worker is taken to be never idle."""
_ROUNDING = 1.05


def observations_of(
    point: MeasuredPoint, engines: MeasuredEngines, collective_latency_s: float
) -> tuple[Observation, ...]:
    """Times of a point beside the work in them; raises InvalidInput with what it does not say.

    A decode step lasts as long as the median TPOT, with drafts as long as the median gap between
    chunks. Prompts are timed by TTFT where one is alone, and by the rate where workers are always
    full; else their rate only says that they take no longer. A prefill and decode pair says of the
    phase that may have waited for the other that it took no longer.
    """
    return tuple(_Reader(point, engines, collective_latency_s).observations())


class _Reader:
    def __init__(
        self, point: MeasuredPoint, engines: MeasuredEngines, collective_latency_s: float
    ) -> None:
        self._point = point
        self._engines = engines
        self._latency_s = collective_latency_s
        self._workload = _mean_request(point)

    def observations(self) -> Iterator[Observation]:
        match self._point.subject.phase:
            case "prefill":
                yield self._prompts()
            case "decode":
                yield self._step()
            case "disaggregated":
                yield self._step()
                yield self._prompts()
            case _:
                yield from self._taking_turns()

    def _taking_turns(self) -> Iterator[Observation]:
        """An aggregated engine: C prompts and all steps of one request in the time of a request."""
        point, pool = self._point, self._engines.decode.pool
        loads = max(1.0, point.subject.concurrency / pool.workers)
        if loads > 1 and pool.layout.data > 1:
            message = "prefill and decode of its data-parallel ranks overlap, nobody knows how much"
            raise InvalidInput(Problem(message=message, hint="study the phases alone"))
        if loads == 1:
            yield self._step()
        steps = (self._workload.osl - 1) / self._tokens_per_step()
        yield self._observation(
            "request",
            point.subject.concurrency / point.requests_per_s,
            {
                Phase.DECODE: self._step_work(loads / pool.layout.data).times(steps),
                Phase.PREFILL: self._prefill().alone.times(loads),
            },
        )

    def _step(self) -> Observation:
        """One decode step, over the sequences that were decoding on average (Little's law)."""
        point = self._point
        tpot = _latency(point.latencies.tpot, "TPOT")
        chunk = self._gap() if self._engines.decode.work.speculative_tokens else tpot
        decoding = min(point.subject.concurrency, point.output_tokens_per_s * tpot.mean / 1000)
        per_rank = max(1.0, decoding) / self._engines.decode.pool.data_ranks
        self._tokens_per_step()
        return self._observation(
            "step", _typical(chunk) / 1000, {Phase.DECODE: self._step_work(per_rank)}
        )

    def _prompts(self) -> Observation:
        point, prefill, pool = self._point, self._prefill(), self._engines.prefill.pool
        loads = point.subject.concurrency / pool.workers
        if loads <= 1 and point.latencies.ttft is not None:
            return self._observation(
                "prompt alone",
                _typical(point.latencies.ttft) / 1000,
                {Phase.PREFILL: prefill.alone},
            )
        is_full = loads >= _WAITING_BATCHES * prefill.prompts_per_batch
        return self._observation(
            "prompt, full worker",
            pool.workers / point.requests_per_s,
            {Phase.PREFILL: prefill.each_of_batch},
            Says.EQUAL if is_full and point.subject.phase == "prefill" else Says.AT_MOST,
        )

    def _prefill(self) -> PrefillWork:
        engine = self._engines.prefill
        return prefill_work(engine.work, self._workload.isl, engine.batch_tokens, self._latency_s)

    def _step_work(self, sequences_per_rank: float) -> PhaseWork:
        work = self._engines.decode.work
        return decode_step_work(work, sequences_per_rank, self._workload, self._latency_s)

    def _tokens_per_step(self) -> float:
        return step_tokens(self._point, self._engines.decode.work.speculative_tokens)

    def _gap(self) -> Distribution:
        return _latency(self._point.latencies.inter_chunk, "gap between chunks")

    def _observation(
        self,
        what: str,
        measured_s: float,
        work: dict[Phase, PhaseWork],
        says: Says = Says.EQUAL,
    ) -> Observation:
        return Observation(
            point=point_name(self._point), what=what, measured_s=measured_s, work=work, says=says
        )


def step_tokens(point: MeasuredPoint, drafts: int) -> float:
    """Tokens of a step on average: those of a chunk, where a step drafts.

    Raises InvalidInput for more or fewer than a step can give.
    """
    if not drafts:
        return 1.0
    gap = _latency(point.latencies.inter_chunk, "gap between chunks")
    tokens = gap.mean / _latency(point.latencies.tpot, "TPOT").mean
    if not 1 / _ROUNDING <= tokens <= (drafts + 1) * _ROUNDING:
        raise InvalidInput(
            Problem(message=f"its chunks of {tokens:.2f} tokens are not steps of MTP {drafts}")
        )
    return min(max(tokens, 1.0), drafts + 1.0)


def point_name(point: MeasuredPoint) -> str:
    """A point in a line: ``1xTEP8 MTP3 decode c64``."""
    subject = point.subject
    return f"{subject.configuration} {subject.phase} c{subject.concurrency}"


def _mean_request(point: MeasuredPoint) -> Workload:
    """The lengths of its requests as they were on average."""
    completed = point.requests.completed
    if not completed or not point.tokens.output or not point.tokens.input:
        raise InvalidInput(Problem(message="its result counts no requests or no tokens"))
    return Workload(
        isl=max(1, round(point.tokens.input / completed)),
        osl=max(1, round(point.tokens.output / completed)),
    )


def _latency(distribution: Distribution | None, name: str) -> Distribution:
    if distribution is None or not distribution.mean > 0:
        raise InvalidInput(Problem(message=f"it has no {name}"))
    return distribution


def _typical(distribution: Distribution) -> float:
    return distribution.mean if distribution.median is None else distribution.median
