"""How long pdrecipe check takes: `make bench` prints it, nothing here asserts a time."""

from __future__ import annotations

import itertools
import shutil
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
    """Check as many recipes as a large repository has; real ones where they are at hand."""
    for label, folder in (("our own", OWN), ("real ones", REAL)):
        files = [path for path in sorted(folder.rglob("*.yaml")) if "specs" not in path.parts]
        if not files:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            for source, path in copies(folder, files, Path(scratch)):
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, path)
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _COMMAND, "check", scratch],
                cwd=REPOSITORY,
                capture_output=True,
                text=True,
                check=False,
            )
            wall = time.perf_counter() - start
        summary = done.stderr.strip().partition(":")[0]
        sys.stdout.write(f"{f'checking {label}':<30}{wall:.2f} s, {summary}\n")


def copies(folder: Path, files: list[Path], scratch: Path) -> Iterator[tuple[Path, Path]]:
    """So many files and where to copy them, each round in a folder of its own."""
    every = ((copy, path) for copy in itertools.count() for path in files)
    for copy, path in itertools.islice(every, RECIPES):
        yield path, scratch / str(copy) / path.relative_to(folder)


if __name__ == "__main__":
    main()
