"""Drives a deployment with AIPerf, one load after the other, and watches it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from generator.collection.aiperf import SUMMARY_SUFFIX, read_aiperf
from generator.collection.measurement import Measurement
from generator.collection.unusable import Unusable
from generator.errors import ClusterFailure, Problem
from generator.rehearsal.commands import aiperf_argv, private_folders
from generator.rehearsal.observation import Occupancy, Sample, occupancy
from generator.rehearsal.plan import Load, RehearsalPlan
from generator.rehearsal.verdict import Measured, RehearsedLoad
from generator.rehearsal_host.deployment import Deployment, Places, inherited_environment
from generator.rehearsal_host.supervisor import Program, ProgramEnd, Supervisor

_SAMPLE_SECONDS = 0.5
_DRAIN_SECONDS = 15.0
_START_SECONDS = 60.0  # AIPerf's own, on a busy machine
_LEAST_TOKENS_PER_S = 50.0  # a tenth of what two cores do
_LEAST_TOKENS_PER_S_OF_ONE = 2.0  # steps of half a second
_PROMPT_TOKENS_OF_ONE = 10  # so many prefilled take no longer than one generated
Say = Callable[[str], None]


class Driver:
    """Sends loads to a running deployment; ``say`` hears how far a load has come."""

    def __init__(
        self,
        supervisor: Supervisor,
        deployment: Deployment,
        plan: RehearsalPlan,
        places: Places,
        aiperf: Path,
        say: Say,
    ) -> None:
        self._supervisor = supervisor
        self._deployment = deployment
        self._plan = plan
        self._places = places
        self._aiperf = aiperf
        self._say = say

    def run(self, load: Load, artifacts: Path) -> tuple[RehearsedLoad, list[Sample]]:
        """Measure one load, with every sample taken; its export lies in ``artifacts`` afterwards.

        Raises ClusterFailure where a process dies or AIPerf fails. Answers that never end are no
        failure but a finding: AIPerf is then ended.
        """
        began = time.time()
        program = self._start(load, artifacts)
        samples: list[Sample] = []
        end = self._watch(program, load, samples)
        if end is None:
            self._supervisor.end(program.name)
            seen = occupancy(samples, began, time.time(), drained=False)
            return RehearsedLoad(load=load, measured=None, seen=seen), samples
        drained = self._drained(samples)
        measurement = _measurement(artifacts, end)
        seen = _seen(measurement, samples, began, drained=drained)
        return RehearsedLoad(load=load, measured=_measured(measurement), seen=seen), samples

    def _start(self, load: Load, artifacts: Path) -> Program:
        program = Program(
            name=f"aiperf-c{load.concurrency}",
            argv=aiperf_argv(self._plan, load, self._aiperf, artifacts),
            environment=inherited_environment() | private_folders(self._places.work),
            folder=self._places.work,
            log=self._places.logs / f"aiperf-c{load.concurrency}.log",
        )
        self._supervisor.start(program)
        return program

    def _watch(self, program: Program, load: Load, samples: list[Sample]) -> ProgramEnd | None:
        """Sample until AIPerf ends; None where it does not in the time of its requests."""
        deadline = time.monotonic() + _time_limit_s(self._plan, load)
        while time.monotonic() < deadline:
            for end in self._look(samples, load):
                if end.program.name == program.name:
                    return end
        return None

    def _look(self, samples: list[Sample], load: Load) -> tuple[ProgramEnd, ...]:
        """Wait for the next sample, or for an end; a dead worker ends everything."""
        ended = self._supervisor.look(_SAMPLE_SECONDS)
        self._deployment.demand_alive(ended)
        sample = self._deployment.sample()
        if sample is not None:
            samples.append(sample)
            self._say(_progress(load, sample))
        return ended

    def _drained(self, samples: list[Sample]) -> bool:
        """Whether every queue is empty soon after the last answer."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline:
            sample = self._deployment.sample()
            if sample is not None:
                samples.append(sample)
                if sample.is_idle:
                    return True
            self._deployment.demand_alive(self._supervisor.look(_SAMPLE_SECONDS))
        return False


def _time_limit_s(plan: RehearsalPlan, load: Load) -> float:
    """When answers that have not ended never will: far beyond what a slow machine takes."""
    tokens_of_one = plan.lengths.osl + plan.lengths.isl / _PROMPT_TOKENS_OF_ONE
    tokens = (load.requests + load.in_flight) * tokens_of_one
    least = min(_LEAST_TOKENS_PER_S, _LEAST_TOKENS_PER_S_OF_ONE * load.in_flight)
    return _START_SECONDS + tokens / least


def _progress(load: Load, sample: Sample) -> str:
    return (
        f"concurrency {load.concurrency:,} as {load.in_flight}: prefill"
        f" {sample.prefill_in_flight}, running {sample.running}, waiting {sample.waiting},"
        f" preempted {sample.preemptions}"
    )


def _measurement(artifacts: Path, end: ProgramEnd) -> Measurement:
    """AIPerf's export; raises ClusterFailure where there is none that can be used."""
    path = artifacts / SUMMARY_SUFFIX
    try:
        if path.exists():
            return read_aiperf(path)
        reason = str(end)
    except Unusable as error:
        reason = f"its export {error}"
    said = f": {end.last_words}" if end.last_words else ""
    hint = f"see {end.program.log}"
    raise ClusterFailure(Problem(message=f"AIPerf gave no figures, {reason}{said}", hint=hint))


def _measured(measurement: Measurement) -> Measured:
    latencies = measurement.latencies
    return Measured(
        completed=measurement.requests.completed,
        failed=measurement.requests.failed or 0,
        duration_s=measurement.duration_s,
        output_tokens_per_s=measurement.tokens.output / measurement.duration_s,
        ttft_p50_ms=latencies.ttft.median if latencies.ttft else None,
        ttft_p99_ms=latencies.ttft.percentile(99) if latencies.ttft else None,
        tpot_p50_ms=latencies.tpot.median if latencies.tpot else None,
    )


def _seen(
    measurement: Measurement, samples: list[Sample], began: float, *, drained: bool
) -> Occupancy:
    """What was seen while AIPerf measured, by its own clock, which is this machine's."""
    if measurement.started is not None:
        began = measurement.started.timestamp()
    return occupancy(samples, began, began + measurement.duration_s, drained=drained)
