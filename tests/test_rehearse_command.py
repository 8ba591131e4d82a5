"""pdrecipe rehearse as a user meets it, short of a deployment; and what collect makes of one."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from generator.cli import main
from generator.documents import read_document
from generator.errors import InvalidInput
from generator.rehearsal.plan import RehearsalPlan, plan_rehearsal
from generator.rehearsal.timing import MOCKERS_TIMING
from generator.rehearsal_host import driver
from generator.rehearsal_host.run_folder import RehearsalFolder
from generator.results.run_marker import read_run_marker
from generator.sweep.lock import LockHeld
from generator.sweep.swept_recipe import SweptRecipe, swept_recipes
from generator.validation import schema
from tests.rehearsals import CC2560, rehearsed, topology_in
from tests.run_outputs import aiperf, write_json
from tests.stub_serving import stub_serving


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["rehearse", *map(str, words)])


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a recipe, or --setup"),
        ([CC2560, "--scale", "0"], "neither auto nor a number from 1"),
        ([CC2560, "--concurrency", "64,many"], "'many' is no concurrency such as 64, or 150%"),
    ],
)
def test_usage(words: list[str | Path], said: str) -> None:
    result = run(*words)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_without_the_environments_it_says_how_to_get_them(tmp_path: Path) -> None:
    result = run(CC2560, "--cache", tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 5
    assert f"Dynamo and AIPerf are not installed in {tmp_path}" in result.stderr
    assert "pdrecipe rehearse --setup" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("osl: 1024", "osl: 90000"), "benchmark: has no isl and osl that the engines take"),
        (("Qwen3.8-2.4T-A95B-NVFP4", "Unheard-Of-1B"), "runs a model that is not known"),
        (("model:\n", "modell:\n"), "model"),
    ],
)
def test_recipes_that_cannot_be_rehearsed(tmp_path: Path, edit: tuple[str, str], said: str) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(CC2560.read_text("utf-8").replace(*edit), "utf-8")
    result = run(recipe, "--cache", tmp_path)
    assert (result.exit_code, said in result.stderr) == (3, True), result.stderr
    assert f"error: {recipe}:" in result.stderr


def test_a_file_of_several_jobs(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    text = CC2560.read_text("utf-8").replace("osl: 1024", "osl: '{osl}'")
    recipe.write_text(f"{text}sweep:\n  osl: [512, 1024]\n", "utf-8")
    result = run(recipe, "--cache", tmp_path)
    assert result.exit_code == 3
    assert "makes 2 jobs, and a rehearsal is of one" in result.stderr


# --- the folder -------------------------------------------------------------------------------


def cc2560() -> SweptRecipe:
    (recipe,) = swept_recipes(read_document(CC2560))
    return recipe


def filled(root: Path, plan: RehearsalPlan) -> RehearsalFolder:
    """A folder as a rehearsal leaves it, with figures that nothing gave."""
    folder = RehearsalFolder(root=root, plan=plan, timing=MOCKERS_TIMING)
    with folder.claimed(cc2560()):
        for place, load in enumerate(plan.loads):
            report = aiperf(load.in_flight)
            write_json(folder.artifacts(load) / "profile_export_aiperf.json", report)
            # AIPerf writes one for each phase as well.
            write_json(folder.artifacts(load) / "phase_manifest.json", {})
            for phase in ("warmup", "profiling"):
                copy = folder.artifacts(load) / "phases" / phase / "profile_export_aiperf.json"
                write_json(copy, report)
            folder.keep(rehearsed(plan, place, preemptions=65 * place), [])
    return folder


def cc2560_plan() -> RehearsalPlan:
    return plan_rehearsal(topology_in(CC2560), (2560, 4296))


def test_points_have_the_recipe_s_loads_and_say_that_they_are_rehearsed(tmp_path: Path) -> None:
    filled(tmp_path / "out", cc2560_plan())
    results = tmp_path / "results.jsonl"
    told = CliRunner().invoke(main, ["collect", str(tmp_path / "out"), "--out", str(results)])
    assert told.exit_code == 0, told.stderr
    points = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    assert [each["id"] for each in points] == [
        f"{cc2560().digest}-c2560",
        f"{cc2560().digest}-c4296",
    ]
    assert [each["invalid"] for each in points] == [[], []]  # 128 requests, but 39 and 66 in flight
    assert [each["origin"] for each in points] == ["rehearsal", "rehearsal"]
    assert [each["preemptions"] for each in points] == [0, 65]
    assert points[0]["sources"]["preemptions"] == "pdrecipe-run.json"
    contract = points[0]["contract"]
    assert contract["rehearsal.sequences"] == "1/64"
    assert contract["rehearsal.tokens"] == "1/32"
    assert "all rehearsal, not measured" in told.stderr


@pytest.mark.parametrize(
    "words", [("pareto",), ("pareto", "--figure", "curves"), ("report",)], ids=" ".join
)
def test_pareto_and_report_say_it_too(
    tmp_path: Path, repository: Path, words: tuple[str, ...]
) -> None:
    filled(tmp_path / "out", cc2560_plan())
    results = tmp_path / "results.jsonl"
    CliRunner().invoke(main, ["collect", str(tmp_path / "out"), "--out", str(results)])
    page = tmp_path / ("page.html" if words[0] == "report" else "picture.svg")
    spec = [str(repository / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml")]
    more = spec if words[0] == "report" else []
    told = CliRunner().invoke(main, [words[0], str(results), *more, *words[1:], "--out", str(page)])
    assert told.exit_code == 0, told.stderr
    assert "REHEARSAL" in told.stdout + page.read_text("utf-8")


def test_the_marker_is_what_its_schema_says(tmp_path: Path) -> None:
    filled(tmp_path / "out", cc2560_plan())
    document = json.loads((tmp_path / "out/pdrecipe-run.json").read_text("utf-8"))
    assert list(Draft202012Validator(schema("run")).iter_errors(document)) == []
    marker = read_run_marker(tmp_path / "out")
    assert marker is not None
    assert [(each.concurrency, each.in_flight) for each in marker.loads] == [(2560, 39), (4296, 66)]


def test_loads_that_are_there_are_not_run_again(tmp_path: Path) -> None:
    plan = cc2560_plan()
    folder = filled(tmp_path / "out", plan)
    assert [folder.rehearsed(load) for load in plan.loads] == [
        rehearsed(plan, 0),
        rehearsed(plan, 1, preemptions=65),
    ]
    seen = folder.artifacts(plan.loads[1]) / "rehearsed.json"
    seen.write_text(seen.read_text("utf-8")[:-20], "utf-8")  # cut off
    assert folder.rehearsed(plan.loads[1]) is None
    other = replace(folder, plan=plan_rehearsal(topology_in(CC2560), (2560,), sequences=32))
    assert other.rehearsed(other.plan.loads[0]) is None  # another load in flight


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    plan = cc2560_plan()
    folder = filled(tmp_path / "out", plan)
    coarser = replace(folder, plan=plan_rehearsal(topology_in(CC2560), (2560,), sequences=128))
    with (
        pytest.raises(InvalidInput, match=re.escape("rehearsal.sequences 1/64")),
        coarser.claimed(cc2560()),
    ):
        pass
    changed = replace(cc2560(), text=cc2560().text + "# changed\n")
    with pytest.raises(InvalidInput, match="another recipe"), folder.claimed(changed):
        pass
    measured = replace(folder, root=tmp_path / "run")
    write_json(tmp_path / "run/results.json", {})
    (tmp_path / "run/config.yaml").write_text(cc2560().text, "utf-8")
    before = sorted(measured.root.iterdir())
    with pytest.raises(InvalidInput, match="no rehearsal"), measured.claimed(cc2560()):
        pass
    assert sorted(measured.root.iterdir()) == before
    busy = pytest.raises(LockHeld, match="another rehearsal is at work here")
    with folder.claimed(cc2560()), busy, folder.claimed(cc2560()):
        pass


def test_a_folder_where_nothing_can_be_written_is_not_called_busy(tmp_path: Path) -> None:
    folder = RehearsalFolder(root=tmp_path / "out", plan=cc2560_plan(), timing=MOCKERS_TIMING)
    (folder.root / ".lock").mkdir(parents=True)
    with pytest.raises(InvalidInput, match=r"\.lock: is a folder"), folder.claimed(cc2560()):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux namespaces")
def test_answers_that_never_end_are_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_time_limit_s", lambda _plan, _load: 1.5)
    monkeypatch.chdir(tmp_path)
    stub_serving(tmp_path / "cache", seconds=600)
    out = Path("rehearsals") / CC2560.stem  # where none is named
    words = (CC2560, "--cache", "cache")
    told = run(*words, "--json")
    assert told.exit_code == 10, told.output
    (load,) = json.loads(told.stdout)["loads"]
    assert load["measured"] is None
    assert load["verdict"]["outcome"] == "never-drains"
    assert load["seen"]["samples"] >= 1
    assert "2,560 never drains" in run(*words).stdout  # an answer: it is not asked again
    # The samples are kept, in the order they were taken.
    lines = (out / "c2560/gauges.jsonl").read_text("utf-8").splitlines()
    times = [json.loads(line)["at"] for line in lines]
    assert times == sorted(times)
    assert times
