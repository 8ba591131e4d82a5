"""Fixtures that every test may use, and how hypothesis searches on a desk and in CI."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from generator.rehearsal_host.environments import default_cache, python_releases
from tests.rack.fixture import RunningRack, running_rack, why_not
from tests.rack_sweeps import prepared
from tests.small_specs import run

REPOSITORY = Path(__file__).resolve().parent.parent

# A desk searches on with new examples each time; CI repeats one fixed set, so that a red run is
# about the change, and prints what reproduces the failure elsewhere.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_configure() -> None:
    """Hear Ctrl-C, as does what tests start, also where they run in the background."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_teststatus(
    report: pytest.TestReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Say with ``-v`` how long each test took: the faults of a Slurm take minutes."""
    if config.get_verbosity() < 1 or report.when != "call" or not report.passed:
        return None
    return "passed", ".", f"PASSED in {report.duration:.0f} s"


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the folder of this checkout (or unpacked sdist)."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of facts and models beside the checkout; a clone alone has none."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared, the folder of reference material beside the checkout")
    return folder


@pytest.fixture(scope="session")
def rehearsal_cache() -> Path:
    """Return the folder of the real Dynamo and AIPerf, installed where they are missing (1.9 GB).

    Where they cannot be, since they have no wheels for it, tests with them are skipped.
    """
    least, below = python_releases()
    if sys.platform != "linux" or not least <= sys.version_info[:2] < below:
        pytest.skip("needs Linux and a Python that Dynamo has wheels for")
    result = run("rehearse", "--setup")
    assert result.exit_code == 0, result.output
    return default_cache(os.environ)


@pytest.fixture(scope="session")
def rack_of_the_run() -> Iterator[RunningRack]:
    """Start one Slurm for all tests of a run."""
    if reason := why_not():
        pytest.skip(reason)
    with running_rack() as rack:
        yield rack


@pytest.fixture
def rack(rack_of_the_run: RunningRack, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningRack]:
    """Return the rack, which the environment names; it is whole again for the next test."""
    for name, value in rack_of_the_run.layout.environment.items():
        monkeypatch.setenv(name, value)
    yield rack_of_the_run
    rack_of_the_run.mend()


@pytest.fixture
def home(rack: RunningRack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, which is the current one, from which a test sends sweeps to the rack."""
    del rack
    monkeypatch.chdir(tmp_path)
    return prepared(tmp_path)
