"""The srtctl launcher against a stub of the orchestrator that checks what it is given."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from generator.cluster.allocation import current_allocation
from generator.cluster.job_file import JobFile, SrtctlLauncher
from generator.cluster.slurm import SlurmCluster
from generator.cluster.srtctl import run_metadata, srtctl_launch
from tests.cluster_jobs import an_array, eventually, result, written_job
from tests.rack.fixture import RunningRack

RECIPE = "1xtp2dep4-1xtp8-mtp-cc32-64.yaml"
LAYOUTS = ("v1", "v2")
ALLOCATION = {"SLURM_JOB_ID": "77", "SLURM_NODELIST": "n[01-04]", "SLURM_JOB_NODELIST": "n[01-04]"}


@pytest.fixture
def launcher(tmp_path: Path, repository: Path) -> SrtctlLauncher:
    """Return a launcher on a checkout that holds only the stub."""
    checkout = tmp_path / "srt slurm"
    package = checkout / "src" / "srtctl" / "cli"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    shutil.copy(repository / "tests" / "stub_orchestrator.py", package / "do_sweep.py")
    config = checkout / "srtslurm.yaml"
    config.write_text("default_account: x\n")
    return SrtctlLauncher(checkout=checkout, python=Path(sys.executable), config=config)


def recipe(repository: Path, layout: str) -> Path:
    folder = repository / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg"
    return folder / layout / RECIPE


def run(folder: Path, **environment: str) -> int:
    command = [sys.executable, "-m", "generator.cluster.job", str(folder)]
    outside = {name: value for name, value in os.environ.items() if name != "SLURM_CONF"}
    everything = {**outside, **ALLOCATION, **environment}
    return subprocess.run(command, env=everything, check=False).returncode


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_recipe_runs(
    tmp_path: Path, repository: Path, launcher: SrtctlLauncher, layout: str
) -> None:
    source = recipe(repository, layout)
    folder = written_job(tmp_path, "a", launcher, concurrencies=(32, 64), recipe=source)
    assert run(folder) == 0
    found = result(tmp_path, "a", 64)
    assert found is not None
    assert (found.status, found.nodes) == ("done", ("n01", "n02", "n03", "n04"))
    output = Path(found.output)
    assert (output / "config.yaml").read_bytes() == source.read_bytes()
    assert (output / "logs" / "sweep_77.log").read_text() == "ran 32 64\n"
    metadata = json.loads((output / "77.json").read_text())
    assert metadata["backend_type"] == "vllm"
    assert metadata["benchmark"] == {"type": "sa-bench", "isl": 8192, "osl": 1024}
    assert metadata["resources"] == {
        "gpu_type": "gb300",
        "gpus_per_node": 4,
        "prefill_nodes": 2,
        "prefill_workers": 1,
        "gpus_per_prefill": 8,
        "decode_nodes": 2,
        "decode_workers": 1,
        "gpus_per_decode": 8,
        "agg_nodes": None,
        "agg_workers": 0,
        "gpus_per_agg": 4,
    }


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ({"prefill_nodes": 4, "prefill_workers": 2}, {"prefill": 8, "decode": 4}),
        ({"prefill_nodes": 2, "prefill_workers": 4, "gpus_per_node": 8}, {"prefill": 4}),
        ({"decode_nodes": "3", "decode_workers": "1"}, {"decode": 12}),
        (
            {"gpus_per_prefill": 2, "decode_nodes": 0, "decode_workers": 1},
            {"prefill": 2, "decode": 2},
        ),
        ({"agg_nodes": 2, "agg_workers": 1}, {"agg": 8}),
    ],
    ids=["by nodes", "many on a node", "digits", "decode beside prefill", "aggregated"],
)
def test_gpus_of_a_worker_that_the_recipe_leaves_out(
    resources: dict[str, object], gpus: dict[str, int]
) -> None:
    """Without them srt-slurm's figures per GPU stay blank. Right values: its own properties."""
    found = run_metadata({"resources": resources}, "7")["resources"]
    assert {role: found[f"gpus_per_{role}"] for role in gpus} == gpus


def test_the_checkout_comes_before_the_path_of_a_recipe(
    tmp_path: Path, launcher: SrtctlLauncher
) -> None:
    """As in srt-slurm's job script, which exports the recipe's environment first."""
    source = tmp_path / "recipe.yaml"
    source.write_text("environment: {PATH: /opt/recipe, MINE: $HOME/x}\n")
    job = JobFile(token="t", recipe=source, points=(), launcher=launcher, time_minutes=5)
    launch = srtctl_launch(launcher, job, (), current_allocation({}), tmp_path / "output")
    assert launch.environment["PATH"] == f"{launcher.checkout / 'bin'}:/opt/recipe"
    assert launch.environment["MINE"] == "$HOME/x"


def test_metadata_of_a_real_run(shared: Path) -> None:
    samples = shared / "samples"
    ran = yaml.safe_load((samples / "recipe.lock.yaml").read_text())
    noted = json.loads((samples / "jobmeta_9004.json").read_text())
    for later in ("cpu_allocation", "cpu_check"):  # the orchestrator adds them
        noted["resources"].pop(later)
    found = run_metadata(ran, "9004")
    assert {**found, "generated_at": noted["generated_at"]} == noted


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_missing_concurrencies_run(
    tmp_path: Path, repository: Path, launcher: SrtctlLauncher, layout: str
) -> None:
    source = recipe(repository, layout)
    folder = written_job(tmp_path, "a", launcher, concurrencies=(64,), recipe=source)
    assert run(folder) == 0
    found = result(tmp_path, "a", 64)
    assert found is not None
    given = yaml.safe_load((Path(found.output) / "config.yaml").read_text())
    whole = yaml.safe_load(source.read_text())
    assert given["benchmark"].pop("concurrencies") == "64"
    assert whole["benchmark"].pop("concurrencies") == "32x64"
    assert given == whole


def test_a_good_end_without_results_is_a_failure(
    tmp_path: Path, repository: Path, launcher: SrtctlLauncher
) -> None:
    source = recipe(repository, "v1")
    folder = written_job(tmp_path, "a", launcher, concurrencies=(32, 64), recipe=source)
    assert run(folder, STUB_FAILS="32", STUB_EMPTY="64") == 1
    reasons = [found and found.reason for found in (result(tmp_path, "a", c) for c in (32, 64))]
    assert reasons == [
        "the benchmark left no result for concurrency 32",
        "no request of concurrency 64 was completed",
    ]


def test_the_orchestrator_ends_its_workers_in_order(
    tmp_path: Path, repository: Path, launcher: SrtctlLauncher
) -> None:
    source = recipe(repository, "v1")
    folder = written_job(tmp_path, "a", launcher, concurrencies=(32, 64), recipe=source)
    environment = {**os.environ, **ALLOCATION, "STUB_SLEEPS": "32"}
    command = [sys.executable, "-m", "generator.cluster.job", str(folder)]
    with subprocess.Popen(command, env=environment) as process:
        output = folder / "runs" / "77.0"
        assert eventually((output / "ready").exists, 20)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert (output / "in_order").exists()
    measured = result(tmp_path, "a", 32)
    assert measured is not None
    assert measured.status == "done"
    assert result(tmp_path, "a", 64) is None


def test_a_recipe_that_is_gone(tmp_path: Path, launcher: SrtctlLauncher) -> None:
    folder = written_job(tmp_path, "a", launcher, recipe=tmp_path / "gone.yaml")
    assert run(folder) == 3
    found = result(tmp_path, "a")
    assert found is not None
    assert found.reason == f"{tmp_path / 'gone.yaml'}: no such file (check the path)"


@pytest.mark.slurm
@pytest.mark.parametrize("layout", LAYOUTS)
def test_on_the_rack(
    rack: RunningRack,
    tmp_path: Path,
    repository: Path,
    launcher: SrtctlLauncher,
    layout: str,
) -> None:
    del rack
    source = recipe(repository, layout)
    folder = written_job(tmp_path, "a", launcher, concurrencies=(32, 64), recipe=source)
    cluster = SlurmCluster()
    array = cluster.submit(an_array(tmp_path, [folder], nodes=4, segment=4))
    assert eventually(lambda: result(tmp_path, "a", 64) is not None, 60)
    found = result(tmp_path, "a", 64)
    assert found is not None
    assert (found.status, found.reason, len(found.nodes)) == ("done", "", 4)
    assert (Path(found.output) / f"{array.job_id}.json").exists()
