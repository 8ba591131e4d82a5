"""Three small recipes, of which a placeholder command fails one, and the commands over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_specs import run
from tests.swept_recipes import V2, edited

FAST = ["--cluster", "debug", "--yes", "--no-canary"]
WORK = 'sh -c "echo ran {concurrencies}; test {concurrencies} != 13"'


def write_three_recipes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with recipes a (loads 1 and 2), b (13, which fails under WORK) and c (4)."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("generator.sweep.looking.SETTLING_S", 0.0)
    made = folder / "recipes"
    made.mkdir()
    for name, loads in (("a", "1x2"), ("b", "13"), ("c", "4")):
        text = edited(V2, ("tiny-1p1d", f"tiny-{name}"), ("64x128", f"'{loads}'"))
        (made / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def answer(*arguments: str, code: int = 0) -> list[str]:
    """The lines of stdout of a command that ends with this code."""
    result = run(*arguments)
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result.stdout.splitlines()
