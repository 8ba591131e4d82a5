"""A small rehearsal with the real Dynamo and AIPerf; the whole way is in test_rehearsal_end_to_end.

A minute, and once some minutes more to install them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generator.results.point import Origin
from generator.results.point_file import read_points
from generator.validation import schema
from tests.rehearsals import RECIPES
from tests.small_specs import run
from tests.started_processes import HOLDER, processes_in, until

RECIPE = RECIPES / "v2/1xtp8-1xtp8-mtp-cc1-4.yaml"  # two workers of a rank each
LOADS = ("90%", "150%")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(rehearsal_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a rehearsal, of which nothing runs any more."""
    out = tmp_path_factory.mktemp("rehearsal") / "out"
    words = ("--cache", str(rehearsal_cache), "--concurrency", ",".join(LOADS), "--out", str(out))
    result = run("rehearse", str(RECIPE), *words, "--json")
    assert result.exit_code == 10, result.output
    assert until(lambda: not processes_in(HOLDER), seconds=5)
    (out.parent / "answer.json").write_text(result.stdout, "utf-8")
    return out


@pytest.fixture(scope="module")
def answer(folder: Path) -> dict[str, Any]:
    """Return what the command said of it."""
    document: dict[str, Any] = json.loads((folder.parent / "answer.json").read_text("utf-8"))
    return document


def test_real_engines_fill_up_where_the_arithmetic_says_so(answer: dict[str, Any]) -> None:
    assert list(Draft202012Validator(schema("rehearsal")).iter_errors(answer)) == []
    within, beyond = answer["loads"]
    assert (within["concurrency"], beyond["concurrency"]) == (285, 475)  # of 317 that fit
    for load in (within, beyond):
        assert load["verdict"]["agrees_with_arithmetic"]
        assert load["measured"]["completed"] == load["requests"]
        assert load["measured"]["failed"] == 0
    assert within["verdict"]["outcome"] == "beyond-slots"  # 20 by max-num-seqs, memory held it
    assert within["seen"]["preemptions"] == 0
    assert within["seen"]["peak_kv_usage"] > 0.8
    assert beyond["verdict"]["outcome"] == "beyond-capacity"
    assert beyond["seen"]["preemptions"] > 0
    assert beyond["measured"]["ttft_p99_ms"] > within["measured"]["ttft_p99_ms"]


def test_its_results_have_the_recipe_s_concurrencies(
    folder: Path, answer: dict[str, Any], tmp_path: Path
) -> None:
    results = tmp_path / "results.jsonl"
    collected = run("collect", str(folder), "--out", str(results))
    assert collected.exit_code == 0, collected.output
    points = sorted(read_points(results), key=lambda each: each.subject.concurrency)
    assert [each.subject.concurrency for each in points] == [285, 475]
    assert {each.origin for each in points} == {Origin.REHEARSAL}
    assert {each.invalid for each in points} == {()}
    seen = [load["seen"]["preemptions"] for load in answer["loads"]]
    assert [each.preemptions for each in points] == seen
