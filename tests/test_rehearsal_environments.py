"""The environments of a rehearsal, made by the real pip of packages that are built here."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from generator.errors import ClusterFailure
from generator.rehearsal_host import environments, installation
from generator.rehearsal_host.environments import (
    EnvironmentPlan,
    default_cache,
    environment_plans,
    find_environments,
    python_releases,
)
from generator.rehearsal_host.installation import set_up

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="set up on Linux alone")

DYNAMO = EnvironmentPlan(
    name="dynamo",
    title="Dynamo",
    installed_bytes=1,
    requirements=("runtime-part==1",),
    alone=("orchestra==1",),
    pins=("runtime-part==1",),
)
AIPERF = EnvironmentPlan(
    name="aiperf",
    title="AIPerf",
    installed_bytes=1,
    requirements=("runtime-part",),
    alone=(),
    pins=("runtime-part==1",),
)


def wheel(index: Path, name: str, version: str, requires: str = "") -> None:
    """A wheel with a command of its own name, into a folder that serves as package index."""
    info = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        f"{name}.py": f"def main():\n    print({version!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\naiperf = {name}:main\n",
    }
    with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in files))


class Told(NamedTuple):
    """What a set-up said, and what its progress counted."""

    lines: list[str]
    items: list[str]

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[str], None]]:
        self.items.append(f"{label} of {total}")
        yield self.items.append


@pytest.fixture
def told() -> Told:
    return Told([], [])


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only package index there is, with two releases of one package."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel(folder, "runtime_part", "1")
    wheel(folder, "runtime_part", "2")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what puts small environments in the place of the real ones."""

    def put(*chosen: EnvironmentPlan) -> None:
        for module in (environments, installation):
            monkeypatch.setattr(module, "environment_plans", lambda: chosen)

    put(DYNAMO, AIPERF)
    return put


@pytest.mark.slow
def test_a_set_up_makes_what_is_missing_and_keeps_what_is_whole(
    tmp_path: Path, index: Path, plans: Callable[..., None], told: Told
) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(ClusterFailure, match=r"Dynamo was not installed: .*orchestra") as caught:
        set_up(cache, told.lines.append, told.progress)
    assert "the package index has no such release" in str(caught.value)
    assert find_environments(cache) is None

    wheel(index, "orchestra", "1", requires="stub-that-nobody-can-have")
    told.lines.clear()
    found = set_up(cache, told.lines.append, told.progress)
    assert told.lines == [
        f"Dynamo: about 0 MB, into {cache / 'dynamo'}",
        f"AIPerf: about 0 MB, into {cache / 'aiperf'}",
        "Dynamo: installed",
        "AIPerf: installed",
    ]
    assert printed_by(str(found.aiperf)) == "1"  # the release of the pins, not the newest
    ask = "import orchestra; orchestra.main()"
    assert printed_by(str(found.dynamo_python), "-c", ask) == "1"
    assert "installing AIPerf of 1" in told.items
    assert "unpacking them all" in told.items

    told.lines.clear()
    assert set_up(cache, told.lines.append, told.progress) == found
    assert told.lines == []

    plans(DYNAMO, replace(AIPERF, requirements=("runtime-part==2",), pins=()))
    assert find_environments(cache) is None
    assert printed_by(str(set_up(cache, told.lines.append, told.progress).aiperf)) == "2"
    assert told.lines == [f"AIPerf: about 0 MB, into {cache / 'aiperf'}", "AIPerf: installed"]


def printed_by(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.usefixtures("plans")
def test_a_full_disk_is_found_before_anything_is_made(
    tmp_path: Path, plans: Callable[..., None], told: Told
) -> None:
    plans(replace(DYNAMO, installed_bytes=10**18), AIPERF)
    with pytest.raises(ClusterFailure, match=r"1500000000\.0 GB are needed here and .* are free"):
        set_up(tmp_path, told.lines.append, told.progress)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_of_what_pip_says_its_errors_are_passed_on(tmp_path: Path) -> None:
    lines = [
        "ERROR: Cannot install orchestra==1.0, these versions have conflicting dependencies.",
        "To fix this you could try to:",
        "1. loosen the range of package versions you've specified",
        "ERROR: ResolutionImpossible: for help visit its page",
    ]
    told = str(installation._refused(DYNAMO, tmp_path / "log", lines))
    assert "conflicting dependencies. | ERROR: ResolutionImpossible" in told
    assert "loosen" not in told
    assert told.endswith("check the network, proxy or PIP_INDEX_URL)")
    assert "it said nothing" in str(installation._refused(DYNAMO, tmp_path / "log", []))


@pytest.mark.parametrize("release", [(3, 10), (3, 14)])
def test_a_python_that_will_not_do_is_refused(
    tmp_path: Path, told: Told, release: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (*release, 1))
    message = rf"need Python 3\.11 or newer, below 3\.14, and pdrecipe runs on 3\.{release[1]}"
    with pytest.raises(ClusterFailure, match=message):
        set_up(tmp_path, told.lines.append, told.progress)


def test_another_system_is_refused(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ClusterFailure, match="wheels are for Linux, and this is darwin"):
        set_up(tmp_path, told.lines.append, told.progress)


def test_a_cache_that_is_a_file_is_named(tmp_path: Path, told: Told) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(ClusterFailure, match="cache: a part of the path is a file"):
        set_up(tmp_path / "cache", told.lines.append, told.progress)


@pytest.mark.usefixtures("plans")
def test_a_second_set_up_waits_for_the_first(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretend(plan: EnvironmentPlan, folder: Path, progress: object) -> None:
        del progress
        home = folder / plan.name
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "python").touch()
        (home / "installed.json").write_text(environments.mark_text(plan))

    monkeypatch.setattr(installation, "_install", pretend)
    is_waiting = threading.Event()

    def listen(line: str) -> None:
        told.lines.append(line)
        is_waiting.set()

    with (tmp_path / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=set_up, args=(tmp_path, listen, told.progress))
        second.start()
        assert is_waiting.wait(timeout=15)
        assert told.lines == ["another set-up is at work in this folder; waiting for it"]
        assert not (tmp_path / "dynamo").exists()
    second.join(timeout=15)
    assert find_environments(tmp_path) is not None

    shutil.rmtree(tmp_path / "dynamo" / "bin")  # as where the interpreter was uninstalled
    assert find_environments(tmp_path) is None
    (tmp_path / "dynamo" / "installed.json").write_text("{")
    assert find_environments(tmp_path) is None


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CACHE_HOME": "/var/cache/me"}, "/var/cache/me/pdrecipe/rehearsal"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/pdrecipe/rehearsal"),
        ({}, "/home/me/.cache/pdrecipe/rehearsal"),
    ],
)
def test_the_cache_folder_follows_the_users_choice(
    environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert default_cache(environment) == Path(folder)


def test_the_real_environments_are_pinned_and_leave_the_stub_out() -> None:
    dynamo, aiperf = environment_plans()
    assert (dynamo.name, dynamo.alone) == ("dynamo", ("ai-dynamo==1.6.1",))
    assert aiperf.requirements == ("aiperf==0.13.0",)
    for plan in (dynamo, aiperf):
        pinned = {pin.partition("==")[0].lower().replace("_", "-") for pin in plan.pins}
        assert {name.partition("==")[0] for name in plan.requirements} <= pinned
        assert "aisimulate" not in pinned
    assert python_releases() == ((3, 11), (3, 14))
