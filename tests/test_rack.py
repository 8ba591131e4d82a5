"""The rack itself: whatever becomes of the tests on it, nothing of it stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster_jobs import eventually
from tests.rack.fixture import why_not
from tests.rack.processes import start_time

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

# A job that ignores being told to end is left running on a node that is lost to the controller.
BREAKS = """\
import json, os, signal
from pathlib import Path
from tests.rack.processes import pid_of

def test_breaks(rack):
    rack.ask("sbatch", "--output=/dev/null", "--wrap", "trap '' TERM; sleep 300")
    rack.verb("kill", rack.nodes[0])
    rack.verb("kill", "slurmdbd")
    run = rack.layout.run
    pids = [pid_of(run, file.stem) for file in run.glob("*.process")]
    told = {"directory": str(rack.layout.directory), "pids": pids}
    Path(os.environ["TOLD"]).write_text(json.dumps(told))
    END
"""


@pytest.mark.parametrize("end", ["assert False", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_nothing_stays_behind(tmp_path: Path, repository: Path, end: str) -> None:
    if reason := why_not():
        pytest.skip(reason)
    (tmp_path / "test_breaks.py").write_text(BREAKS.replace("END", end), encoding="utf-8")
    told = tmp_path / "told.json"
    # The configuration is the project's, so that its fixtures are there; the test is not.
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-q", "-m", ""]
    done = subprocess.run(
        [*command, "-c", str(repository / "pyproject.toml"), str(tmp_path / "test_breaks.py")],
        cwd=repository,
        env={**os.environ, "TOLD": str(told)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if "assert" in end else -signal.SIGKILL), done.stdout
    found = json.loads(told.read_text(encoding="utf-8"))
    assert len(found["pids"]) > 18
    assert eventually(lambda: not Path(found["directory"]).exists())
    assert [pid for pid in found["pids"] if pid and start_time(pid)] == []
    # Its watch looks every second, and then has nothing to do any more.
    assert eventually(lambda: found["directory"] not in all_processes())


def all_processes() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
