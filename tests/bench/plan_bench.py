"""How long a plan takes and how it grows: `make bench` prints it, nothing here asserts a time."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from generator.planning.base_spec import subject_of_spec
from generator.planning.engines import Judge, enumerate_engines
from generator.planning.latency import Limits
from generator.planning.plan_costs import chosen_costs
from generator.planning.search import DeploymentSpace, search

REPOSITORY = Path(__file__).resolve().parents[2]
SPEC = REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
RACKS = (1, 4, 16)

_COMMAND = "from generator.cli import main; main()"


def main() -> None:
    """The whole command on one rack, then the search alone on one and more.

    Each in a process of its own, whose peak of memory is its own too. An engine stays inside one
    rack; of more racks there are more workers.
    """
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
        return
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _COMMAND, "plan", str(SPEC)],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    show("pdrecipe plan, 72 GB300", f"{time.perf_counter() - start:.2f} s with start-up")
    for racks in RACKS:
        subprocess.run([sys.executable, __file__, str(racks)], cwd=REPOSITORY, check=True)


def measure(racks: int) -> None:
    """Judge all engines, search all deployments of so many racks, and print what that took."""
    start, start_cpu = time.perf_counter(), time.process_time()
    subject = subject_of_spec(SPEC)
    nodes = racks * subject.gpu.nodes_per_nvlink_domain
    specs = {
        dtype: replace(spec, cluster=replace(spec.cluster, nodes=nodes))
        for dtype, spec in subject.specs.items()
    }
    subject = replace(subject, specs=specs)
    engines = enumerate_engines(Judge(subject))
    costs, _ = chosen_costs(subject.gpu.name, subject.spec.engine.version)
    found = search(subject, DeploymentSpace(subject, engines, costs, Limits()))
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    show(
        f"planning for {racks} rack{'s' if racks > 1 else ''}",
        f"{seconds:.2f} s ({cpu:.2f} s of CPU), {found.combinations:,} candidates"
        f" ({found.combinations / seconds:,.0f}/s),"
        f" {found.evaluated:,} evaluated, {peak_mib:.0f} MiB",
    )


def show(label: str, text: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{label:<30}{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
