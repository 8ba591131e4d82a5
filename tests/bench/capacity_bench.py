"""How long capacity answers take: `make bench` prints it, nothing here asserts a time."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from generator.capacity.capacity import evaluate_engine
from generator.documents import parse_document
from generator.engine.options import EngineOptions, options_from_flags
from generator.engine.plan import plan_engine
from generator.facts import engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool, parse_layout
from generator.workload import Workload

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = REPOSITORY / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
SPEC = REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
RECIPE = (
    REPOSITORY / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2/1xtp2dep4-1xtp8-mtp-cc32-64.yaml"
)
FLAGS = ("--gpu", "gb300", "--layout", "TEP8", "--mtp", "3", "--max-model-len", "9216")
WORKLOAD = Workload(isl=8192, osl=1024)
RUNS = 5
RECIPE_LINES = 260

_COMMAND = "from generator.cli import main; main()"
_MODULES = """
import json, sys
from generator.cli import main
sys.stdout.write = lambda text: len(text)
main(standalone_mode=False)
own = [name for name in sys.modules if name.partition(".")[0] == "generator"]
sys.stderr.write(json.dumps([len(sys.modules), len(own)]))
"""


def main() -> None:
    """Print every figure with what it is of."""
    every = list(sweep())
    evaluate = evaluator()
    first = seconds(lambda: [evaluate(options) for options in every], runs=1) / len(every)
    warm = seconds(lambda: [evaluate(options) for options in every]) / len(every)
    show("capacity evaluation", f"{warm * 1e6:,.0f} us, {1 / warm:,.0f} a second")
    show(
        "",
        f"(mean of {len(every)} engines from parsed inputs; {first * 1e6:,.0f} us the first time)",
    )
    for label, arguments in (
        ("pdrecipe capacity --model", ["capacity", "--model", str(MODEL), *FLAGS]),
        ("pdrecipe capacity SPEC", ["capacity", str(SPEC)]),
    ):
        wall = seconds(partial(run, _COMMAND, arguments))
        modules, own = json.loads(run(_MODULES, arguments).stderr)
        show(label, f"{wall:.2f} s wall, {modules} modules, {own} of them our own")
    text = long_recipe()
    show(
        f"parsing {RECIPE_LINES} lines of recipe",
        f"{seconds(lambda: parse_document(text, 'recipe')):.4f} s",
    )


def sweep() -> Iterator[EngineOptions]:
    """Engines that all differ: layouts, MTP, sequences and states."""
    for layout, mtp, sequences, ssm in itertools.product(
        ("TEP8", "TP4DP4+EP", "TP2DP4+EP", "TEP16"),
        range(4),
        (16, 64, 256),
        ("bfloat16", "float32"),
    ):
        tokens = sequences * (1 + mtp)
        flags = {
            "speculative_config.num_speculative_tokens": mtp,
            "kv_cache_dtype": "fp8",
            "mamba_ssm_cache_dtype": ssm,
            "max_model_len": 10240,
            "max_num_seqs": sequences,
            "max_cudagraph_capture_size": tokens,
            "max_num_batched_tokens": tokens + 16,
            "cudagraph_mode": "FULL_DECODE_ONLY",
            "gpu_memory_utilization": 0.92,
        }
        yield replace(options_from_flags(flags), layout=parse_layout(layout))


def evaluator() -> Callable[[EngineOptions], object]:
    """One capacity evaluation: plan the engine, account for its memory, count requests."""
    architecture, accelerator = load_architecture(MODEL), gpu("gb300")
    defaults = engine_defaults("vllm", "0.26.0", accelerator)

    def evaluate(options: EngineOptions) -> object:
        pool = WorkerPool(workers=1, layout=options.layout)
        engine = plan_engine("engine", "decode", pool, options, architecture, defaults)
        return evaluate_engine(engine, architecture, accelerator, defaults, WORKLOAD)

    return evaluate


def seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    """The shortest of several runs: what else the machine does only adds to it."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def run(code: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """A command in an interpreter of its own, start-up included."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )


def long_recipe() -> str:
    """As many lines of YAML as a long recipe has: a committed one, repeated under other keys."""
    own = RECIPE.read_text(encoding="utf-8").splitlines()
    lines = (
        line
        for copy in itertools.count()
        for line in [f"copy_{copy}:", *(f"  {line}" for line in own)]
    )
    return "\n".join(itertools.islice(lines, RECIPE_LINES)) + "\n"


def show(label: str, text: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{label:<30}{text}\n")


if __name__ == "__main__":
    main()
