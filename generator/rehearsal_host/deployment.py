"""A rehearsal's deployment as real processes: brought up, watched, and waited for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.errors import ClusterFailure, Problem
from generator.files import write_text_atomically
from generator.rehearsal.commands import (
    FRONTEND_PORT,
    MODEL,
    MODEL_FOLDER,
    MockWorker,
    dynamo_environment,
    frontend_argv,
    mock_workers,
)
from generator.rehearsal.model_folder import model_files
from generator.rehearsal.observation import Sample, WorkerGauges, worker_gauges
from generator.rehearsal.plan import RehearsalPlan
from generator.rehearsal_host.supervisor import Program, ProgramEnd, Supervisor

_READY_SECONDS = 120.0  # three seconds on two idle cores
_LOOK_SECONDS = 0.25
_HTTP_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a rehearsal works: what it leaves behind as logs, the rest for its time alone."""

    work: Path
    logs: Path

    def prepare(self) -> None:
        """Make the folders and the model."""
        for name in ("home", "tmp", "discovery"):
            (self.work / name).mkdir(parents=True, exist_ok=True)
        for name, text in model_files().items():
            write_text_atomically(self.work / MODEL_FOLDER / name, text)
        self.logs.mkdir(parents=True, exist_ok=True)


def inherited_environment() -> dict[str, str]:
    """What programs get of this process's environment: search path and locale, nothing secret."""
    kept = ("PATH", "LANG", "LC_ALL", "TZ")
    return {name: os.environ[name] for name in kept if name in os.environ}


class Deployment:
    """The frontend and the mockers of a plan. Everything runs under the supervisor given."""

    def __init__(
        self,
        supervisor: Supervisor,
        plan: RehearsalPlan,
        places: Places,
        python: Path,
        profile: Path | None,
    ) -> None:
        self._supervisor = supervisor
        self._places = places
        self._workers = mock_workers(plan, python, profile)
        self._python = python

    def start(self) -> None:
        """Start every process and wait until the frontend knows all of them.

        Raises ClusterFailure where one ends, or not all are there in time.
        """
        self._start("frontend", frontend_argv(self._python), {})
        for worker in self._workers:
            port = {"DYN_SYSTEM_PORT": str(worker.system_port)}
            self._start(worker.name, worker.argv, port)
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            self.demand_alive(self._supervisor.look(_LOOK_SECONDS))
            if time.monotonic() > deadline:
                raise self._not_ready()

    def sample(self) -> Sample | None:
        """The gauges of all workers now; None where one is too busy to answer."""
        try:
            gauges = {worker.name: self._gauges(worker) for worker in self._workers}
        except OSError:
            return None
        roles = {worker.name: worker.role for worker in self._workers}
        return Sample(
            at=time.time(),
            prefill={name: each for name, each in gauges.items() if roles[name] == "prefill"},
            decoding={name: each for name, each in gauges.items() if roles[name] != "prefill"},
        )

    def demand_alive(self, ended: tuple[ProgramEnd, ...]) -> None:
        """Raise ClusterFailure where a process of the deployment is among what ended."""
        mine = {"frontend", *(worker.name for worker in self._workers)}
        found = [end for end in ended if end.program.name in mine]
        if found:
            raise ClusterFailure([_died(end) for end in found])

    def _start(self, name: str, argv: tuple[str, ...], more: Mapping[str, str]) -> None:
        environment = inherited_environment() | dynamo_environment(self._places.work)
        self._supervisor.start(
            Program(
                name=name,
                argv=argv,
                environment=environment | dict(more),
                folder=self._places.work,
                log=self._places.logs / f"{name}.log",
            )
        )

    def _is_ready(self) -> bool:
        return len(list(self._instances())) == len(self._workers) and MODEL in self._models()

    def _instances(self) -> Iterator[str]:
        """Workers that the frontend has found."""
        for each in self._told("/health").get("instances", ()):
            if each.get("endpoint") == "generate":
                yield str(each.get("instance_id"))

    def _models(self) -> set[str]:
        return {str(each.get("id")) for each in self._told("/v1/models").get("data", ())}

    def _told(self, path: str) -> dict[str, list[dict[str, object]]]:
        try:
            answer = self._supervisor.get(FRONTEND_PORT, path)
            document = json.loads(answer.body) if answer.status == _HTTP_OK else {}
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def _gauges(self, worker: MockWorker) -> WorkerGauges:
        return worker_gauges(self._supervisor.get(worker.system_port, "/metrics").body)

    def _not_ready(self) -> ClusterFailure:
        found = len(list(self._instances()))
        message = (
            f"after {_READY_SECONDS:.0f} s the frontend knows {found} of"
            f" {len(self._workers)} workers"
        )
        hint = f"see the logs in {self._places.logs}, or try when the machine is less busy"
        return ClusterFailure(Problem(message=message, hint=hint))


def _died(end: ProgramEnd) -> Problem:
    said = f": {end.last_words}" if end.last_words else ""
    return Problem(message=f"{end}{said}", hint=f"see {end.program.log}")
