"""How long pdrecipe collect takes and what memory: `make bench` prints it, nothing asserts a time.

All files are synthetic and say so: times are drawn around a stated step time, nothing was measured.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RECIPE = REPOSITORY / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2"
RUNS = 2_500
LOADS = (1, 4, 8, 16)
REQUESTS = 16
TOKENS = 28
LARGE_LOAD = 2_560
LARGE_REQUESTS = 20_480
LARGE_TOKENS = 1_024
STEP_S = 0.0065

_COMMAND = "from generator.cli import main; main()"


def main() -> None:
    """Collect as many points as a large study has, then one point of the largest load."""
    texts = [path.read_text("utf-8") for path in sorted(RECIPE.glob("*.yaml"))]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for number in range(RUNS):
            run = folder / "many" / f"{number:05}"
            text = texts[number % len(texts)].replace("name: ", f"name: synthetic-{number}-", 1)
            write(run / "config.yaml", text)
            for load in LOADS:
                write(
                    run / "logs/sa-bench" / f"results_concurrency_{load}_gpus_16.json", report(load)
                )
        measure(folder / "many", f"{RUNS * len(LOADS):,} reports of {REQUESTS} requests")
        run = folder / "large" / "1"
        write(run / "config.yaml", texts[0])
        path = run / "logs/sa-bench" / f"results_concurrency_{LARGE_LOAD}_gpus_48.json"
        path.parent.mkdir(parents=True)
        with path.open("w", encoding="utf-8") as stream:
            stream.writelines(large_report())
        measure(folder / "large", f"one report of {path.stat().st_size / 1e6:.0f} MB")


def measure(folder: Path, what: str) -> None:
    """Collect a folder in a process of its own and print what that took."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "collect", folder, "--out", folder / "results.jsonl",
         "--origin", "synthetic"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    said = done.stderr.strip().rpartition("\n")[2].rpartition(":")[0]
    sys.stdout.write(f"{f'collecting {what}':<46}{wall:.1f} s, {peak:.2f} GiB peak, {said}\n")


def report(load: int) -> str:
    """A report of the sample's size for one load."""
    draw = random.Random(load)  # noqa: S311 - synthetic times
    ttfts = [draw.gauss(0.08, 0.004) for _ in range(REQUESTS)]
    itls = [[draw.gauss(STEP_S, 1e-4) for _ in range(TOKENS)] for _ in range(REQUESTS)]
    texts = ["synthetic " * 20 for _ in range(REQUESTS)]
    lists = {"ttfts": ttfts, "itls": itls, "generated_texts": texts}
    return json.dumps({**totals(load, REQUESTS, TOKENS), **lists, **summary(TOKENS)})


def large_report() -> Iterator[str]:
    """The text of a report with the raw lists of the largest load, part by part."""
    draw = random.Random(0)  # noqa: S311 - synthetic times
    head = json.dumps(totals(LARGE_LOAD, LARGE_REQUESTS, LARGE_TOKENS))
    yield head[:-1] + ', "itls": ['
    gaps = [draw.gauss(STEP_S, 1e-4) for _ in range(LARGE_TOKENS)]
    for request in range(LARGE_REQUESTS):
        gaps[request % LARGE_TOKENS] = draw.gauss(STEP_S, 1e-4)
        yield (", " if request else "") + json.dumps(gaps)
    ttfts = [draw.gauss(0.08, 0.004) for _ in range(LARGE_REQUESTS)]
    yield "], " + json.dumps({"ttfts": ttfts, **summary(LARGE_TOKENS)})[1:]


def totals(load: int, requests: int, tokens: int) -> dict[str, object]:
    """Counts and lengths."""
    return {
        "date": "20261130-001551",
        "backend": "synthetic",
        "tokenizer_id": "synthetic",
        "num_prompts": requests,
        "request_rate": "inf",
        "max_concurrency": load,
        "duration": requests / load * (0.08 + STEP_S * tokens),
        "completed": requests,
        "total_input_tokens": requests * 115,
        "total_output_tokens": requests * tokens,
        "input_lens": [115] * requests,
        "output_lens": [tokens] * requests,
        "errors": [""] * requests,
    }


def summary(tokens: int) -> dict[str, float]:
    """The client's own figures, as the model of this file has them."""
    return {
        "mean_ttft_ms": 80.0,
        "mean_tpot_ms": STEP_S * 1e3,
        "median_tpot_ms": STEP_S * 1e3,
        "mean_e2el_ms": 80.0 + STEP_S * 1e3 * tokens,
    }


def write(path: Path, text: str) -> None:
    """Write a text into a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
