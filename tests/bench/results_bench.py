"""How long answers about 10,000 points take: `make bench` prints it, nothing asserts a time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from generator.results.distribution import Distribution, distribution  # noqa: E402
from generator.results.engine_pool import EnginePool  # noqa: E402
from generator.results.point import Latencies, MeasuredPoint, Tokens  # noqa: E402
from generator.results.point_file import write_points  # noqa: E402
from tests.synthetic_points import CONTRACT, Deployment, synthetic_point  # noqa: E402

SPEC = REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
POINTS = 10_000
_CONCURRENCIES = tuple(2**power for power in range(10))
_COMMAND = "from generator.cli import main; main()"


def main() -> None:
    """Write as many points of a stated model and ask for what people ask for."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch, "results.jsonl")
        write_points(results, (_as_collected(synthetic_point(*each)) for each in _points()))
        size = results.stat().st_size / POINTS
        sys.stdout.write(f"{'bytes of a point':<40}{size:.0f}\n")
        for label, arguments in (
            ("frontier as a table", ["pareto"]),
            ("frontier as SVG", ["pareto", "--out", f"{scratch}/frontier.svg"]),
            (
                "100 curves as SVG",
                [
                    *("pareto", "--by", "headroom"),
                    *("--figure", "curves", "--out", f"{scratch}/curves.svg"),
                ],
            ),
        ):
            show(label, timed(*arguments, str(results)))
        page = str(Path(scratch, "report.html"))
        show("report", timed("report", str(results), str(SPEC), "--out", page))


def _points() -> list[tuple[Deployment, int]]:
    """Deployments that all differ, so that none ties with another."""
    return [
        (
            Deployment(
                configuration=f"{number % 4 + 1}xTP2DP4+EP + 1xTP4DP4+EP MTP{number % 3}",
                digest=f"{number:016x}",
                prefill_gpus=8 * (number % 4 + 1),
                base_ms=4 + number * 0.0013,
                per_sequence_ms=0.05 + (number * 7919 % 1000) / 10_000,
                factors={"headroom": str(number % 100)},
            ),
            concurrency,
        )
        for number in range(POINTS // len(_CONCURRENCIES))
        for concurrency in _CONCURRENCIES
    ]


def _as_collected(point: MeasuredPoint) -> MeasuredPoint:
    """The point with as much in it as there is in one of a real run: nearly 4 KB as JSON."""
    pool = EnginePool(
        role="prefill", workers=1, gpus_per_worker=8, engine="vllm", layout="TP2DP4+EP"
    )
    tokens = point.tokens
    return replace(
        point,
        subject=replace(point.subject, pools=(pool, replace(pool, role="decode"))),
        tokens=Tokens(
            input=tokens.input,
            output=tokens.output,
            server_input=tokens.input,
            server_output=tokens.output,
        ),
        latencies=Latencies(
            **{each.name: _spread(point.latencies, each.name) for each in fields(Latencies)}
        ),
        contract={**CONTRACT, **{f"engine.limit_{number}": str(number) for number in range(10)}},
        sources=dict.fromkeys(("figures", "latencies", "recipe", "gpus", "tokens"), "synthetic"),
    )


def _spread(latencies: Latencies, name: str) -> Distribution:
    """A latency whose percentiles differ and have as many digits as a double has."""
    mean_ms = getattr(latencies, name).mean
    return distribution([mean_ms * (0.9 + step / 50) for step in range(11)])


def show(label: str, wall: float) -> None:
    """One line of the answer."""
    sys.stdout.write(f"{f'{POINTS:,} points, {label}':<40}{wall:.2f} s\n")


def timed(*arguments: str) -> float:
    """Seconds that a command takes; a failing one ends the run."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _COMMAND, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
