"""What people install: the wheel, the assets it carries, and the environment `make` creates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import generator
from generator.assets import asset_root, find_asset_root

# --- assets -----------------------------------------------------------------------------------


def test_checkout_serves_its_own_assets(repository: Path) -> None:
    assert asset_root() == repository


def test_no_packaged_assets_in_the_checkout(repository: Path) -> None:
    """They would shadow every edit of templates/ and schemas/."""
    assert not (repository / "generator" / "_assets").exists()


def make_assets(home: Path) -> None:
    (home / "templates").mkdir(parents=True)
    (home / "schemas").mkdir()


def test_packaged_assets_win_over_folders_beside_the_package(tmp_path: Path) -> None:
    package = tmp_path / "generator"
    make_assets(package / "_assets")
    make_assets(tmp_path)
    assert find_asset_root(package) == package / "_assets"


def test_assets_beside_the_package_are_found(tmp_path: Path) -> None:
    make_assets(tmp_path)
    assert find_asset_root(tmp_path / "generator") == tmp_path


def test_half_of_the_assets_is_a_broken_installation(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no templates/ and schemas/ in .*_assets or"):
        find_asset_root(tmp_path / "generator")


# --- the wheel --------------------------------------------------------------------------------


def attempt(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that must not see the settings of the `make` and Python around it."""
    inherited = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH"}
    environment = {name: text for name, text in os.environ.items() if name not in inherited}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints; its whole output is the message where it fails."""
    done = attempt(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as an index would offer it: from the sdist, not from the checkout."""
    folder = tmp_path_factory.mktemp("build")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=repository)
    (archive,) = folder.glob("pdrecipe-*.tar.gz")
    offline = ("--no-deps", "--no-index", "--no-build-isolation")
    run(sys.executable, "-m", "pip", "wheel", *offline, "-w", folder, archive, cwd=folder)
    (built,) = folder.glob("pdrecipe-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own and return that environment's bin folder.

    The dependencies are borrowed from the running environment by a .pth file, which saves their
    installation; its own editable pdrecipe stays out, since a .pth file is not followed twice.
    """
    home = tmp_path_factory.mktemp("clean") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent)
    python = home / "bin" / "python"
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel, cwd=home)
    site_packages = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home
    )
    borrowed = Path(site_packages.strip()) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home / "bin"


def packaged_files(repository: Path) -> set[str]:
    """Return what the wheel must hold: the package, and templates and schemas inside it."""
    homes = {"generator": "generator"} | {
        name: f"generator/_assets/{name}" for name in ("templates", "schemas")
    }
    return {
        f"{home}/{path.relative_to(repository / folder).as_posix()}"
        for folder, home in homes.items()
        for path in (repository / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_wheel_from_sdist_is_complete(repository: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = f"pdrecipe-{generator.__version__}.dist-info"
    assert {name for name in names if not name.startswith(metadata)} == packaged_files(repository)
    assert f"{metadata}/licenses/LICENSE" in names


@pytest.mark.slow
def test_installed_wheel_finds_its_assets(installed: Path, tmp_path: Path) -> None:
    script = "import generator.assets; print(generator.assets.asset_root())"
    root = Path(run(installed / "python", "-c", script, cwd=tmp_path).strip())
    assert root.is_relative_to(installed.parent)
    assert (root.parent.name, root.name) == ("generator", "_assets")


@pytest.mark.slow
def test_installed_command_tells_its_version(installed: Path, tmp_path: Path) -> None:
    assert generator.__version__ in run(installed / "pdrecipe", "--version", cwd=tmp_path)


# --- the environment --------------------------------------------------------------------------

OLD_PYTHON = """case "$*" in *version_info*) exit 1;; --version) echo Python 3.9.2;; esac"""
PYTHON_WITHOUT_ENSUREPIP = """case "$*" in *ensurepip*) exit 1;; esac"""


@pytest.mark.parametrize(
    ("interpreter", "message"),
    [
        pytest.param(OLD_PYTHON, "Python 3.9.2 is too old, pdrecipe needs 3.11", id="old"),
        pytest.param(PYTHON_WITHOUT_ENSUREPIP, "apt-get install python3-venv", id="no-ensurepip"),
        pytest.param(None, "no ./python on PATH; name one: make PYTHON=", id="none"),
    ],
)
def test_make_says_what_python_it_needs(
    repository: Path, tmp_path: Path, interpreter: str | None, message: str
) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(repository / name, tmp_path)
    if interpreter is not None:
        (tmp_path / "python").write_text(f"#!/bin/sh\n{interpreter}\n", encoding="utf-8")
        (tmp_path / "python").chmod(0o755)
    done = attempt("make", "PYTHON=./python", "venv", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_make_alone_prints_its_targets(repository: Path) -> None:
    shown = run("make", cwd=repository)
    for target in ("venv", "recipes", "test", "clean"):
        assert f"make {target} " in shown
