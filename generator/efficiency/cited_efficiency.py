"""The efficiencies that plans start from: fitted to the cited public points and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from generator.bounds.speculation import acceptance_rate_of
from generator.efficiency.cited_work import CitedWork, cited_works
from generator.efficiency.factors import Efficiency, EfficiencyTable, Phase
from generator.efficiency.fit import Observation, PhaseFit, Says, fit_phases

_NOT_PUBLISHED = "the engine version of the aggregated points was not published"


@cache
def cited_efficiencies() -> EfficiencyTable:
    """The default factors of each GPU that public points are of.

    Filed under the release that the points name; those that name none are taken to be of it.
    """
    return EfficiencyTable(tuple(each for gpu in _gpus() for each in _of_gpu(gpu)))


@cache
def cited_acceptance_rate() -> float:
    """The share of drafted tokens accepted that makes the one public MTP point come true.

    Matched by construction: that point says nothing of how well steps with MTP are predicted.
    """
    (cited,) = (each for each in cited_works() if each.point.speculative_tokens)
    point = cited.point
    if point.tokens_per_s_per_user is None:
        raise LookupError(f"{point.name} has no interactivity")
    decode = next(
        each
        for each in cited_efficiencies().efficiencies
        if each.phase is Phase.DECODE and each.gpu == point.gpu
    )
    step_s = decode.predicted_s(cited.step.bound_s, cited.step.steps)
    return acceptance_rate_of(point.speculative_tokens, step_s * point.tokens_per_s_per_user)


def observations(cited: CitedWork) -> Iterator[Observation]:
    """What a cited point says of times.

    An aggregated engine does the prefill of every request and their decode steps in turn, so that
    a request's time in the closed loop is C prompts and OSL - 1 steps. TPOT alone says how long a
    step takes where no other request prefills. A deployment's throughput says that neither phase
    is slower. Points with MTP say nothing, since nobody published what was accepted.
    """
    point, prompt = cited.point, cited.prefill
    if point.speculative_tokens:
        return
    tokens = point.workload.osl - 1
    if point.prefill is None:
        if point.concurrency == 1 and point.tpot_ms is not None:
            yield Observation(
                point=point.name,
                what="step",
                measured_s=point.tpot_ms / 1000,
                work={Phase.DECODE: cited.step},
            )
        if (request_s := _request_s(cited)) is not None:
            yield Observation(
                point=point.name,
                what="request",
                measured_s=request_s,
                work={
                    Phase.DECODE: cited.step.times(tokens),
                    Phase.PREFILL: prompt.alone.times(point.concurrency),
                },
            )
    elif (request_s := _request_s(cited)) is not None:
        yield Observation(
            point=point.name,
            what="prompt, full worker",
            measured_s=request_s / point.concurrency * cited.prefill_workers,
            work={Phase.PREFILL: prompt.each_of_batch},
            says=Says.AT_MOST,
        )
        yield Observation(
            point=point.name,
            what="steps of a request",
            measured_s=request_s,
            work={Phase.DECODE: cited.step.times(tokens)},
            says=Says.AT_MOST,
        )


def _request_s(cited: CitedWork) -> float | None:
    """Seconds of a request in the closed loop, from the throughput."""
    point = cited.point
    if point.total_tokens_per_s_per_gpu is None:
        return None
    requests_per_s = point.total_tokens_per_s_per_gpu * point.gpus / point.workload.request_tokens
    return point.concurrency / requests_per_s


def _gpus() -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.point.gpu for each in cited_works()))


def _of_gpu(gpu: str) -> Iterator[Efficiency]:
    cited = [each for each in cited_works() if each.point.gpu == gpu]
    version = next((each.point.engine_version for each in cited if each.point.engine_version), None)
    fits = fit_phases([each for work in cited for each in observations(work)])
    sources = dict.fromkeys(each.point.source for each in cited)
    for phase, fit in fits.items():
        yield Efficiency(
            gpu=gpu,
            engine_version=version,
            phase=phase,
            factor=fit.factor,
            fixed_s_per_step=fit.fixed_s_per_step,
            residuals=fit.residuals,
            source="; ".join(sources),
            as_of=max(each.point.as_of for each in cited),
            note=_note(fit, _layouts(phase, fit, cited)),
        )


def _layouts(phase: Phase, fit: PhaseFit, cited: Iterable[CitedWork]) -> tuple[str, ...]:
    """Layouts of the engines that were timed: others are predicted from these."""
    timed = {each.point for each in fit.residuals}
    points = [each.point for each in cited if each.point.name in timed]
    pools = (
        (point.prefill or point.decode) if phase is Phase.PREFILL else point.decode
        for point in points
    )
    return tuple(dict.fromkeys(str(pool.layout) for pool in pools))


def _note(fit: PhaseFit, layouts: Sequence[str]) -> str:
    times = f"fitted to {len(fit.residuals)} public times only, of {' and '.join(layouts)}"
    if fit.has_fixed_cost:
        return f"{times}; {_NOT_PUBLISHED}"
    return f"{times}, which cannot tell a fixed cost from a factor; {_NOT_PUBLISHED}"
