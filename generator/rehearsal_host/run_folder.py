"""The folder of a rehearsal: one that ``pdrecipe collect`` reads, and that can be gone on with.

Beside the recipe and the marker there is a folder for each concurrency, with AIPerf's export, the
workers' gauges, and what follows from both. That is written last, so that a load is there whole or
not at all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from generator.errors import InvalidInput, Problem
from generator.files import os_problem, read_text, write_text_atomically
from generator.rehearsal.observation import Sample, WorkerGauges
from generator.rehearsal.plan import Load, RehearsalPlan
from generator.rehearsal.timing import Timing
from generator.rehearsal.verdict import RehearsedLoad
from generator.rehearsal_host.timing_file import write_timing_file
from generator.results.point import Origin
from generator.results.run_marker import (
    MARKER_FILE,
    RunMarker,
    ScaledLoad,
    read_run_marker,
    write_run_marker,
)
from generator.sweep.lock import LockHeld, exclusive
from generator.sweep.swept_recipe import SweptRecipe

CONFIG_FILE = "config.yaml"
_SEEN_FILE = "rehearsed.json"
_GAUGES_FILE = "gauges.jsonl"
_LOCK_FILE = ".lock"
_TIMING_FILE = "timing.npz"
_ENGINE = "ai-dynamo mocker"


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalFolder:
    """One rehearsal of a recipe."""

    root: Path
    plan: RehearsalPlan
    timing: Timing

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def artifacts(self, load: Load) -> Path:
        """Where a load's export belongs."""
        return self.root / _name(load)

    @contextmanager
    def claimed(self, recipe: SweptRecipe) -> Iterator[None]:
        """Be alone in the folder for the block, after it was made one of this recipe.

        Raises InvalidInput for a folder of another recipe, of other settings, or with a rehearsal
        at work.
        """
        self._refuse_others(recipe)  # before a lock is left in a folder of somebody else's
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(os_problem(error, str(self.root))) from error
        with ExitStack() as stack:
            try:
                stack.enter_context(exclusive(self.root / _LOCK_FILE))
            except LockHeld as error:
                message, hint = "another rehearsal is at work here", "wait for it, or name --out"
                problem = Problem(message=message, hint=hint, source=str(self.root))
                raise LockHeld(problem) from error
            self._refuse_others(recipe)
            self._mark()
            config = self.root / CONFIG_FILE
            if not config.exists():
                write_text_atomically(config, recipe.text)
            yield

    def rehearsed(self, load: Load) -> RehearsedLoad | None:
        """The load as it was rehearsed here before; None where it was not, or not to the end."""
        path = self.artifacts(load) / _SEEN_FILE
        if not path.exists():
            return None
        try:
            found = msgspec.convert(json.loads(read_text(path, str(path))), RehearsedLoad)
        except (ValueError, RecursionError):
            return None
        return found if found.load == load else None

    def samples(self, load: Load) -> tuple[Sample, ...]:
        """The gauges that were taken while the load was rehearsed here."""
        path = self.artifacts(load) / _GAUGES_FILE
        if not path.exists():
            return ()
        lines = read_text(path, str(path)).splitlines()
        return tuple(_sample(json.loads(line)) for line in lines)

    def clear(self, load: Load) -> None:
        """Remove what an interrupted run of a load has left."""
        shutil.rmtree(self.artifacts(load), ignore_errors=True)

    def keep(self, rehearsed: RehearsedLoad, samples: Iterable[Sample]) -> None:
        """Write the workers' gauges and what follows from them, then let the marker tell of it."""
        lines = "".join(f"{json.dumps(asdict(each))}\n" for each in samples)
        write_text_atomically(self.artifacts(rehearsed.load) / _GAUGES_FILE, lines)
        path = self.artifacts(rehearsed.load) / _SEEN_FILE
        write_text_atomically(path, json.dumps(msgspec.to_builtins(rehearsed), indent=1) + "\n")
        self._mark()

    def write_timing(self) -> Path | None:
        """The file of step times for mockers, None where they use their own."""
        if self.timing.profile is None:
            return None
        path = self.root.absolute() / _TIMING_FILE
        write_timing_file(path, self.timing.profile.arrays())
        return path

    def _refuse_others(self, recipe: SweptRecipe) -> None:
        config = self.root / CONFIG_FILE
        if config.exists() and read_text(config, str(config)) != recipe.text:
            message, hint = "holds the run of another recipe", "name another folder with --out"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(self.root)))
        marker = read_run_marker(self.root)
        if marker is None and config.exists():
            message, hint = "holds a run that is no rehearsal", "name another folder with --out"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(self.root)))
        if marker is not None and marker.conditions != self._conditions():
            said = ", ".join(f"{key} {value}" for key, value in marker.conditions.items())
            message = f"holds a rehearsal with {said}"
            hint = "name another folder with --out, or give the --scale and --timing of this one"
            source = str(self.root / MARKER_FILE)
            raise InvalidInput(Problem(message=message, hint=hint, source=source))

    def _mark(self) -> None:
        write_run_marker(
            self.root,
            RunMarker(
                origin=Origin.REHEARSAL,
                note="simulated engines: speeds are no prediction of the real ones",
                conditions=self._conditions(),
                loads=tuple(self._scaled_loads()),
            ),
        )

    def _conditions(self) -> Mapping[str, str]:
        scale = self.plan.scale
        return {
            "rehearsal.engine": _ENGINE,
            "rehearsal.timing": str(self.timing.name),
            "rehearsal.sequences": f"1/{scale.sequences}",
            "rehearsal.tokens": f"1/{scale.tokens}",
        }

    def _scaled_loads(self) -> Iterator[ScaledLoad]:
        """Loads of this call, and those of calls before."""
        marker = read_run_marker(self.root)
        known = {each.folder: each for each in marker.loads} if marker else {}
        for load in self.plan.loads:
            found = self.rehearsed(load)
            known[_name(load)] = ScaledLoad(
                folder=_name(load),
                concurrency=load.concurrency,
                in_flight=load.in_flight,
                preemptions=found.seen.preemptions if found else None,
            )
        yield from sorted(known.values(), key=lambda each: each.concurrency)


def _sample(document: Mapping[str, Any]) -> Sample:
    prefill, decoding = (
        {name: WorkerGauges(**gauges) for name, gauges in document[role].items()}
        for role in ("prefill", "decoding")
    )
    return Sample(at=document["at"], prefill=prefill, decoding=decoding)


def _name(load: Load) -> str:
    return f"c{load.concurrency}"
