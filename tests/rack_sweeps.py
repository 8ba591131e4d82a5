"""Sweeps of small recipes on a real Slurm, through the command line, and what became of them."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.rack.fixture import RunningRack
from tests.small_specs import run
from tests.swept_recipes import V2, edited

# Notes its start and its end beside the recipes, and in between does what the file of its recipe
# says, or else sleeps as long as the file ``seconds`` does.
NOTE = """\
import pathlib, re, sys, time
home, load = pathlib.Path(sys.argv[1]), sys.argv[2]
(name,) = re.findall("^name: tiny-(.*)$", pathlib.Path(sys.argv[3]).read_text(), re.M)
note = lambda kind: (home / f"{name}-{load}.{kind}").open("a").write("x")
note("began")
ours = home / f"{name}.py"
exec(ours.read_text() if ours.exists() else 'time.sleep(float((home / "seconds").read_text()))')
note("ended")
"""


def prepared(folder: Path) -> Path:
    """A folder with the jobs' program, which ends at once, and room for recipes."""
    (folder / "recipes").mkdir(parents=True)
    (folder / "note.py").write_text(NOTE, encoding="utf-8")
    jobs_last(folder, 0)
    return folder


def jobs_last(folder: Path, seconds: float | str) -> None:
    """Jobs that begin from now on last so long; a text that is no number makes them fail."""
    (folder / "seconds").write_text(str(seconds), encoding="utf-8")


def write_recipes(count: int, *, loads: str = "1", nodes: int = 4, sizes: int = 5) -> None:
    """Recipes of ``nodes`` and up, of so many sizes by turns."""
    for number in range(count):
        write_recipe(f"r{number:03}", nodes=nodes + 2 * (number % sizes), loads=loads)


def write_recipe(
    file: str, *edits: tuple[str, str], nodes: int = 4, loads: str = "1", folder: str = "recipes"
) -> None:
    text = edited(
        V2,
        ("tiny-1p1d", f"tiny-{file}"),
        ("64x128", f"'{loads}'"),
        ("decode: {nodes: 2", f"decode: {{nodes: {nodes - 2}"),
        *edits,
    )
    Path(folder, f"{file}.yaml").write_text(text, encoding="utf-8")


def command(home: Path, sweep: str = "s") -> list[str]:
    words = f"{sys.executable} {home}/note.py {home} {{concurrency}} {{recipe}}"
    return ["--launcher", "command", "--command", words, "--sweep", sweep, "--name", "tiny"]


def submission(home: Path, *more: str, sweep: str = "s") -> list[str]:
    """The words of a submission of everything at once, without a question."""
    return ["submit", "recipes", *command(home, sweep), "--yes", "--no-canary", *more]


def submit(home: Path, *more: str, sweep: str = "s") -> None:
    result = run(*submission(home, *more, sweep=sweep))
    assert result.exit_code == 0, result.output


def document(sweep: str = "s", *, exit_codes: tuple[int, ...] = (0, 10)) -> dict[str, Any]:
    result = run("status", sweep, "--json")
    assert result.exit_code in exit_codes, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == 0 or not found["complete"]
    return found


def states(sweep: str = "s") -> Counter[str]:
    return Counter(each["state"] for each in document(sweep)["points"])


def by_recipe(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The points of a status document by the file of their recipe: one of each here."""
    return {Path(each["file"]).stem: each for each in found["points"]}


# What takes seconds on an idle machine may take minutes on one that does something else as well.
PATIENCE_S = 300


def eventually(
    condition: Callable[[], bool], seconds: float = PATIENCE_S, every: float = 0.5
) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(every)
    return condition()


def assert_states(seconds: float = PATIENCE_S, sweep: str = "s", **wanted: int) -> None:
    """Wait until the points are in these states, and say where they are when they are not."""
    if not eventually(lambda: states(sweep) == wanted, seconds, every=1):
        found = document(sweep)["points"]
        raise AssertionError([(each["file"], each["state"], each["why"]) for each in found])


def notes(home: Path, kind: str) -> Counter[str]:
    return Counter({path.stem: path.stat().st_size for path in home.glob(f"*.{kind}")})


def watch(sweep: str = "s") -> int:
    """The exit code of ``status --watch``."""
    return run("status", sweep, "--watch", "--every", "1").exit_code


def assert_all_done_once(home: Path, points: int, sweep: str = "s") -> None:
    found = document(sweep)
    assert (found["complete"], found["counts"]["done"]) == (True, points)
    assert sorted(notes(home, "ended").values()) == [1] * points


def jobs_in_the_queue(rack: RunningRack) -> list[str]:
    """Every job that waits or runs, array tasks one by one."""
    return rack.ask("squeue", "-h", "-r", "-o", "%i").split()


def known_jobs(rack: RunningRack) -> dict[str, str]:
    """The name of every job that the queue knows, by its id: what ended stays for minutes."""
    rows = rack.ask("squeue", "-h", "-r", "-t", "all", "-o", "%i|%j").splitlines()
    return dict(row.split("|", 1) for row in rows)


def accounted(rack: RunningRack) -> dict[str, str]:
    """What accounting says of every job, by its id."""
    listed = rack.ask("sacct", "-n", "-P", "-X", "-o", "jobid,state").splitlines()
    return dict(line.split("|", 1) for line in listed)
