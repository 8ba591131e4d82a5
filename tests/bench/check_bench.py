"""How long pdrecipe check and diff take: `make bench` prints it, nothing here asserts a time."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
OWN = REPOSITORY / "recipes"
REAL = REPOSITORY.parent / "shared/recipes"
RECIPES = 500

_COMMAND = "from generator.cli import main; main()"


def main() -> None:
    """Check as many recipes as a large repository has, and compare them with changed ones.

    Real recipes, too, where they are at hand.
    """
    for label, folder in (("our own", OWN), ("real ones", REAL)):
        files = [
            path
            for path in sorted(folder.rglob("*.yaml"))
            if not {"specs", "sites"} & {*path.parts}
        ]
        if not files:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            before, after = Path(scratch, "before"), Path(scratch, "after")
            for source, path in copies(folder, files):
                text = source.read_text("utf-8")
                write(before / path, text)
                write(after / path, text.replace("max-num-seqs: ", "max-num-seqs: 1"))
            wall, done = timed("check", str(before))
            summary = done.stderr.strip().partition(":")[0]
            sys.stdout.write(f"{f'checking {label}':<30}{wall:.2f} s, {summary}\n")
            wall, done = timed("diff", str(before), str(after))
            counts = (line for line in done.stdout.splitlines() if line.startswith(f"{RECIPES} "))
            summary = next(counts, "no answer").partition(".")[0]
            sys.stdout.write(f"{f'comparing {label}':<30}{wall:.2f} s, {summary}\n")


def timed(*arguments: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Seconds that a command takes, and what it said."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    return time.perf_counter() - start, done


def copies(folder: Path, files: list[Path]) -> Iterator[tuple[Path, Path]]:
    """So many files and their paths below a side, each round in a folder of its own."""
    every = ((copy, path) for copy in itertools.count() for path in files)
    for copy, path in itertools.islice(every, RECIPES):
        yield path, Path(str(copy)) / path.relative_to(folder)


def write(path: Path, text: str) -> None:
    """Write a text into a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
