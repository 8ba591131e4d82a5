"""The README's commands run and print what the README shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """One command of a console block and the lines shown under it."""

    command: str
    shown: list[str]


def steps(text: str) -> list[Step]:
    """Every command of the document's console blocks, in order."""
    found: list[Step] = []
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            else:
                found[-1].shown.append(line)
    return found


def run(command: str, folder: Path) -> list[str]:
    """What a command prints on stdout, run as a reader would: in a checkout, by bash."""
    scripts = Path(sys.executable).parent
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in result.stderr, result.stderr
    return result.stdout.splitlines()


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether lines agree; a line of dots stands for any number of lines."""
    if "..." not in shown:
        return shown == printed
    cut = shown.index("...")
    rest = shown[cut + 1 :]
    return printed[:cut] == shown[:cut] and (not rest or printed[-len(rest) :] == rest)


@pytest.fixture(scope="module")
def checkout(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the commands read, so that the tour may write."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(repository / "recipes", folder / "recipes")
    for data in ("logs", "runs", "studies", "traces"):
        shutil.copytree(repository / "tests/data" / data, folder / "tests/data" / data)
    return folder


def test_tour(checkout: Path) -> None:
    """The tour as one walk: later commands see what earlier ones wrote."""
    walk = steps(README.read_text(encoding="utf-8"))
    assert len(walk) > 5
    for step in walk:
        printed = run(step.command, checkout)
        assert matches(step.shown, printed), f"$ {step.command}\n" + "\n".join(printed)


def test_make_recipes_changes_nothing_committed(repository: Path) -> None:
    result = subprocess.run(
        ["make", "recipes"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("42 recipes: 0 new, 0 changed, 42 unchanged.") == 2
    assert "317.43" in result.stdout
