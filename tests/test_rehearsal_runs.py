"""`pdrecipe rehearse` as a command: real processes in real namespaces, the programs stubs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.rehearsal_host import rehearse
from tests.small_specs import run
from tests.started_processes import HOLDER, networks, networks_of, processes_in, until
from tests.stub_serving import stub_serving

RECIPES = Path(__file__).resolve().parents[1] / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2"
RECIPE = RECIPES / "2xtp2dep4-1xtp4dep4-mtp-cc256.yaml"  # three workers
CC2560 = RECIPES / "4xtp2dep4-1xtp4dep4-cc2560.yaml"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux namespaces")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for the stubs; nothing that was started there may be left afterwards."""
    yield tmp_path / "cache"
    assert processes_in(tmp_path) == []
    assert until(lambda: not processes_in(HOLDER))


def words(cache: Path, *more: str, recipe: Path = RECIPE) -> list[str]:
    out = cache.parent / "out"
    return ["rehearse", str(recipe), "--cache", str(cache), "--out", str(out), *more]


def test_a_rehearsal_is_collected_and_what_it_has_is_not_run_again(cache: Path) -> None:
    driven = stub_serving(cache)
    first = run(*words(cache, "--concurrency", "90%,150%", recipe=CC2560))
    assert first.exit_code in (0, 10), first.output
    assert "simulated" in first.stdout
    loads = driven.read_text().split()
    assert len(loads) == 2
    again = run(*words(cache, "--concurrency", "90%,150%", recipe=CC2560))
    assert (again.exit_code, again.stdout) == (first.exit_code, first.stdout)
    assert driven.read_text().split() == loads

    out = cache.parent / "out"
    results = cache.parent / "results.jsonl"
    collected = run("collect", str(out), "--out", str(results))
    assert collected.exit_code == 0, collected.output
    points = [json.loads(line) for line in results.read_text().splitlines()]
    found = {each["subject"]["concurrency"]: each for each in points if "subject" in each}
    assert set(found) == {2577, 4296}
    assert {each["origin"] for each in found.values()} == {"rehearsal"}
    assert {path.name for path in (out / "logs").iterdir()} >= {"frontend.log", "decode-0.log"}


def test_a_full_disk_is_told_before_anything_runs(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = stub_serving(cache)
    monkeypatch.setattr(rehearse, "_ROOM_BYTES", 10**18)
    result = run(*words(cache))
    assert (result.exit_code, driven.exists()) == (5, False)
    assert "1000000000.0 GB are needed here and" in result.stderr


@pytest.mark.parametrize("name", ["decode", "frontend"])
def test_a_process_that_dies_is_named_and_ends_the_rehearsal(cache: Path, name: str) -> None:
    stub_serving(cache, dies=name, seconds=60)
    result = run(*words(cache))
    assert result.exit_code == 5, result.output
    assert "ended with exit code 7: no blocks are left" in result.stderr
    assert f"{name}" in result.stderr
    stub_serving(cache)
    assert run(*words(cache)).exit_code in (0, 10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_after_a_signal_nothing_is_left_and_another_run_works(
    cache: Path, number: signal.Signals
) -> None:
    driven = stub_serving(cache, seconds=600)
    argv = [sys.executable, "-m", "generator.cli", *words(cache)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as rehearsal:
        assert until(driven.exists)
        closed = networks_of(cache)
        assert len(closed) == 1
        rehearsal.send_signal(number)
        _, said = rehearsal.communicate(timeout=30)
    expected = -number if number == signal.SIGKILL else 128 + number
    assert rehearsal.returncode == expected, said
    assert b"Traceback" not in said
    message = f"interrupted by {number.name}, everything that was started is ended; the same"
    assert (message in said.decode()) == (number != signal.SIGKILL)
    assert until(lambda: not processes_in(cache), seconds=5)
    assert until(lambda: closed.isdisjoint(networks()), seconds=5)
    stub_serving(cache)
    assert run(*words(cache)).exit_code in (0, 10)


def test_a_sweep_of_rehearsals_on_this_machine(cache: Path) -> None:
    driven = stub_serving(cache)
    sweep = cache.parent / "sweep"
    recipes = [str(RECIPE), str(CC2560)]
    launcher = ["--launcher", "rehearse", "--cache", str(cache), "--scale", "64"]
    options = ["--cluster", "debug", "--sweep", str(sweep), "--yes", "--no-canary"]
    result = run("submit", *recipes, *launcher, *options)
    assert result.exit_code == 0, result.output
    assert len(driven.read_text().split()) == 2
    results = cache.parent / "results.jsonl"
    assert run("collect", str(sweep), "--out", str(results)).exit_code == 0
    figure = cache.parent / "frontier.svg"
    assert run("pareto", str(results), "--out", str(figure)).exit_code == 0
    assert "REHEARSAL - simulated engines" in figure.read_text()


def test_recipes_that_cannot_be_rehearsed_are_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    accuracy = RECIPES / "accuracy/1xtp8-1xtp8-mtp-cc1-4-acc.yaml"
    sweep = tmp_path / "sweep"
    words = ("--launcher", "rehearse", "--cluster", "debug", "--sweep", str(sweep), "--yes")
    result = run("submit", str(accuracy), str(RECIPE), *words)
    assert result.exit_code == 3
    assert f"{accuracy}: benchmark: has no isl and osl that the engines take" in result.stderr
    assert not sweep.exists()
