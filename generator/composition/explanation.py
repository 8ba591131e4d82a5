"""Why a deployment is proposed, and how it agrees with those of another spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.composition.pairs import Pair, PairChecker
from generator.composition.phase_frontier import prefill_at
from generator.composition.phase_points import EngineKind, Phases
from generator.composition.proposals import Candidate, Choice
from generator.composition.rate_matching import supplied_by
from generator.spec.spec import DeploymentSpec
from generator.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A deployment of another spec at one concurrency beside the one proposed for it."""

    concurrency: int
    file: str
    theirs: str
    ours: str
    agrees: bool
    reasons: tuple[str, ...]


def choice_reasons(choice: Choice) -> Iterator[str]:
    """Why these engines, given those that do more alone per GPU at this concurrency."""
    if choice.chosen is None:
        yield choice.refusal
        return
    yield from _decode_reasons(choice, choice.chosen)
    yield from _prefill_reasons(choice, choice.chosen)


def _decode_reasons(choice: Choice, chosen: Candidate) -> Iterator[str]:
    others = {each.decode.kind: each for each in reversed(choice.others)}
    refused = {each.decode.kind: each.reason for each in choice.rejected}
    for point in choice.measured:
        rate = f"{point.requests_per_s_per_gpu:.3f} requests/s per GPU"
        if point.kind == chosen.decode.kind:
            leads = " leads decode:" if point is choice.measured[0] else ":"
            below = f" at {point.concurrency}, the rung below"
            yield f"{point.kind}{leads} {rate}{below * (point.concurrency < choice.concurrency)}"
            return
        if point.kind in refused:
            yield f"{point.kind} does more ({rate}), but {refused[point.kind]}"
        elif point.kind in others:
            yield f"{point.kind} does more ({rate}), but {_less(others[point.kind], chosen)}"


def _less(other: Candidate, chosen: Candidate) -> str:
    """What another deployment gives, and why it is not of better prefill workers."""
    figures = (
        f"with {other.match.workers}x{other.prefill.name}"
        f" {other.tokens_per_s_per_gpu:,.0f} tokens/s per GPU, this one"
        f" {chosen.tokens_per_s_per_gpu:,.0f}"
    )
    return f"{other.refusal}, and {figures}" if other.refusal else figures


def _prefill_reasons(choice: Choice, chosen: Candidate) -> Iterator[str]:
    """Prefill engines that read more per GPU than the chosen one, and what speaks against them."""
    if chosen.refusal:
        yield f"another prefill reads more, but {chosen.refusal}"
    mine = chosen.match.prefill.requests_per_s_per_gpu
    for other in choice.others:
        rate = other.match.prefill.requests_per_s_per_gpu
        if other.decode.kind == chosen.decode.kind and rate > mine:
            workers = f"{other.match.workers}x{other.prefill.name}"
            less = (
                f"{workers} on as many GPUs supplies {other.match.supplied:.2f} requests/s,"
                f" this one {chosen.match.supplied:.2f}"
                if other.gpus == chosen.gpus
                else _less(other, chosen)
            )
            yield (
                f"prefill {other.prefill.name} reads more ({rate:.3f} requests/s per GPU,"
                f" {chosen.prefill.name} {mine:.3f}), but {less}"
            )


def prefill_reason(candidate: Candidate) -> str:
    """The arithmetic of the rate match."""
    match = candidate.match
    return (
        f"{match.workers} x {match.prefill.requests_per_s:.2f} x (1 - {match.margin:g})"
        f" = {match.supplied:.2f} >= {match.needed:.2f} requests/s"
    )


def compare(
    choices: Iterable[Choice],
    deployments: Iterable[DeploymentSpec],
    phases: Phases,
    checker: PairChecker,
) -> Iterator[Comparison]:
    """Every load of another spec's deployments beside what is proposed for that concurrency."""
    by_load = {choice.concurrency: choice for choice in choices}
    for deployment in deployments:
        for concurrency in sorted(deployment.concurrencies):
            choice = by_load.get(concurrency)
            yield _comparison(choice, deployment, concurrency, phases, checker)


def _comparison(
    choice: Choice | None,
    theirs: DeploymentSpec,
    concurrency: int,
    phases: Phases,
    checker: PairChecker,
) -> Comparison:
    tokens = theirs.speculative_tokens.decode
    decode = EngineKind(name=str(theirs.decode.layout), num_speculative_tokens=tokens)
    chosen = choice.chosen if choice else None
    text = f"{theirs.prefill} + {theirs.decode}{f' MTP{tokens}' if tokens else ''}"
    if choice is None or chosen is None:
        reasons = ["not among the concurrencies composed"]
        if choice is not None:
            reasons = [*choice_reasons(choice)]
    else:
        reasons = [*_differences(chosen, choice, theirs, decode, phases, checker)]
    prefill = (theirs.prefill.workers, str(theirs.prefill.layout))
    agrees = chosen is not None and (
        chosen.shape == (*prefill, decode) and theirs.decode.workers == 1
    )
    if agrees and choice is not None:
        reasons = [*choice_reasons(choice)]
    return Comparison(
        concurrency=concurrency,
        file=theirs.file,
        theirs=text,
        ours=str(chosen) if chosen else "",
        agrees=agrees,
        reasons=tuple(reasons),
    )


def _differences(
    ours: Candidate,
    choice: Choice,
    theirs: DeploymentSpec,
    decode: EngineKind,
    phases: Phases,
    checker: PairChecker,
) -> Iterator[str]:
    if theirs.decode.workers != 1:
        yield f"{theirs.decode.workers} decode workers: one is composed at a time"
    if decode != ours.decode.kind:
        yield from _other_decode(decode, ours, choice)
    if str(theirs.prefill.layout) != ours.prefill.name:
        yield from _other_prefill(ours, theirs, phases, checker)
    elif theirs.prefill.workers != ours.match.workers:
        yield f"prefill workers: {prefill_reason(ours)}"


def _other_decode(decode: EngineKind, ours: Candidate, choice: Choice) -> Iterator[str]:
    for rejection in choice.rejected:
        if rejection.decode.kind == decode:
            yield f"{decode}: {rejection.reason}"
            return
    for other in choice.others:
        if other.decode.kind == decode:
            yield (
                f"{decode} gives {other.tokens_per_s_per_gpu:,.0f} tokens/s per GPU,"
                f" {ours.decode.kind} {ours.tokens_per_s_per_gpu:,.0f}"
            )
            return
    measured = {point.kind: point for point in choice.measured}
    if decode not in measured:
        yield f"{decode} was not measured alone at {choice.concurrency}"
        return
    yield (
        f"{decode} is behind the decode frontier:"
        f" {measured[decode].requests_per_s_per_gpu:.3f} requests/s per GPU,"
        f" {ours.decode.kind} {ours.decode.requests_per_s_per_gpu:.3f}"
    )


def _other_prefill(
    ours: Candidate, theirs: DeploymentSpec, phases: Phases, checker: PairChecker
) -> Iterator[str]:
    """What speaks for either prefill in front of the decode engine proposed."""
    name, workers, decode = str(theirs.prefill.layout), theirs.prefill.workers, ours.decode.kind
    curve = phases.prefill_for(decode).get(name)
    point = prefill_at(curve, ceil_div(ours.concurrency, workers)) if curve else None
    if point is None:
        yield f"prefill {name} was not measured alone"
        return
    mine = ours.match.prefill
    gain = mine.requests_per_s_per_gpu / point.requests_per_s_per_gpu - 1
    yield (
        f"prefill {ours.prefill.name} reads {mine.requests_per_s_per_gpu:.3f} requests/s per GPU,"
        f" {name} {point.requests_per_s_per_gpu:.3f} ({gain:+.0%})"
    )
    supplied = supplied_by(workers, point, ours.match.margin)
    if supplied < ours.match.needed:
        yield f"{theirs.prefill} supplies {supplied:.2f} of {ours.match.needed:.2f} requests/s"
    pair = Pair(prefill=name, workers=workers, decode=decode, concurrency=ours.concurrency)
    other = checker.check(pair)
    if other.refusal:
        yield f"{decode} with {theirs.prefill}: {other.refusal}"
    elif other.block_tokens != ours.capacity.block_tokens and other.held and ours.capacity.held:
        yield (
            f"{name} would keep decode blocks of {other.block_tokens} tokens, not"
            f" {ours.capacity.block_tokens}: room for {other.held:,.0f} requests, not"
            f" {ours.capacity.held:,.0f}, of which {ours.concurrency} run"
        )
