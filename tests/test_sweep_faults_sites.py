"""What a site file does on a real Slurm: a look at a compute node first, and srt-slurm's jobs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rack.fixture import RunningRack
from tests.rack_sweeps import (
    assert_all_done_once,
    assert_states,
    document,
    eventually,
    known_jobs,
    submission,
    watch,
    write_recipes,
)
from tests.small_specs import run

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

RECIPE = "1xtp2dep4-1xtp8-mtp-cc32-64.yaml"


def write_site(home: Path, **more: Any) -> str:
    site = {"version": 1, "name": "here", "slurm": {"partition": "batch", "racks": 1}, **more}
    (home / "site.yaml").write_text(yaml.safe_dump(site), encoding="utf-8")
    return "site.yaml"


def test_paths_are_looked_for_on_a_compute_node_before_anything_is_sent(
    home: Path, rack: RunningRack
) -> None:
    write_recipes(2)
    models = {"ours": str(home / "model"), "theirs": "/nowhere/model"}
    site = write_site(home, models=models)
    (home / "model").mkdir()
    before = set(known_jobs(rack))
    refused = run(*submission(home, "--site", site))
    assert refused.exit_code == 3
    (line,) = (each for each in refused.stderr.splitlines() if each.startswith("error"))
    assert "on a compute node: /nowhere/model" in line
    assert len(set(known_jobs(rack)) - before) == 1  # the look itself

    site = write_site(home, models={"ours": models["ours"]})
    sent = run(*submission(home, "--site", site))
    assert sent.exit_code == 0, sent.output
    assert watch() == 0
    assert_all_done_once(home, 2)


def test_a_full_cluster_holds_nobody_up(
    home: Path, rack: RunningRack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.sweep.preflight.WAIT_S", 2)
    rack.ask("sbatch", "--exclusive", "--nodes=18", "--output=/dev/null", "--wrap=sleep 100")
    assert eventually(lambda: rack.ask("squeue", "-h", "-t", "R").strip() != "")
    write_recipes(2)
    site = write_site(home, models={"ours": str(home)})
    sent = run(*submission(home, "--site", site))
    assert sent.exit_code == 0, sent.output
    assert "no node was free within 2 s" in sent.stderr
    assert_states(submitted=2)
    waiting = {each["why"] for each in document()["points"]}
    assert waiting <= {"Resources", "Priority"}
    rack.ask("scancel", "--name=wrap")
    assert_states(done=2)
    assert_all_done_once(home, 2)


@pytest.fixture
def checkout(home: Path, repository: Path) -> Path:
    """Return an srt-slurm that holds only the stub of the orchestrator."""
    folder = home / "srt slurm"
    package = folder / "src" / "srtctl" / "cli"
    package.mkdir(parents=True)
    for each in (package.parent, package):
        (each / "__init__.py").touch()
    shutil.copy(repository / "tests" / "stub_orchestrator.py", package / "do_sweep.py")
    (folder / "srtslurm.yaml").write_text("default_account: x\n", encoding="utf-8")
    return folder


def test_srtctl_runs_recipes_of_both_layouts_and_again_what_is_missing(
    home: Path, repository: Path, checkout: Path
) -> None:
    layouts = repository / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg"
    for layout in ("v1", "v2"):
        shutil.copy(layouts / layout / RECIPE, home / "recipes" / f"{layout}.yaml")
    srtctl = {"checkout": str(checkout), "python": sys.executable}
    site = write_site(home, srtctl=srtctl, environment={"STUB_FAILS": "64"})
    words = ["submit", "recipes", "--launcher", "srtctl", "--sweep", "s", "--name", "tiny"]
    sent = run(*words, "--site", site, "--yes", "--no-canary")
    assert sent.exit_code == 0, sent.output
    assert_states(done=2, failed=2)
    failed = [each for each in document()["points"] if each["state"] == "failed"]
    assert {(each["concurrency"], each["why"]) for each in failed} == {
        (64, "the benchmark left no result for concurrency 64")
    }
    assert failed[0]["log_tail"] == "ran 32 64"
    assert run("logs", "s", failed[0]["point"]).stdout.endswith("ran 32 64\n")

    site = write_site(home, srtctl=srtctl)
    assert "What is sent from now on" in run("submit", "s", "--site", site, "--yes").stdout
    assert run("retry", "s", "--failed", "--yes").exit_code == 0
    assert_states(done=4)
    for point in document()["points"]:
        output = Path(point["output"])
        given = yaml.safe_load((output / "config.yaml").read_text(encoding="utf-8"))
        is_second = point["concurrency"] == 64
        assert given["benchmark"]["concurrencies"] == ("64" if is_second else "32x64")
        (metadata,) = (path for path in output.glob("*.json") if path.stem.isdigit())
        assert json.loads(metadata.read_text(encoding="utf-8"))["job_id"] == metadata.stem
        assert (point["attempts"], len(point["nodes"])) == (1 + is_second, 4)
