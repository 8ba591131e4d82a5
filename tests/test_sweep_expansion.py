"""Override files and grids are submitted as the jobs that srtctl makes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator.documents import Document, parse_document, read_document
from generator.errors import InvalidInput
from generator.recipe.expansion import variants
from generator.recipe.recipe import Dialect
from generator.sweep.points import recipe_digest
from generator.sweep.recipe_files import read_recipes_to_send
from generator.sweep.swept_recipe import SweptRecipe, swept_recipe, swept_recipes
from generator.yaml_text.writing import quoted_yaml
from tests.small_specs import run
from tests.swept_recipes import V1, V2, document, edited

GRID = edited(
    V1,
    ("prefill: {tensor-parallel-size: 8}", 'prefill: {tensor-parallel-size: "{tp}", seed: 007x}'),
    ("prefill_nodes: 2", 'prefill_nodes: "{nodes}"'),
    ("concurrencies: 64x128", 'concurrencies: ["{conc}"]'),
)
GRID += "sweep: {conc: [64, 128], tp: [4, 8], nodes: [3]}\n"
"""As the published grids are: a job for each load."""

OVERRIDES = f"""\
schema: 2
base:
{"".join(f"  {line}" for line in V2.removeprefix("schema: 2").splitlines(keepends=True)[1:])}
override_wide:
  roles: {{decode: {{nodes: 4, gpus: 16}}}}
override_plain:
  name: plain
  slurm: null
zip_override_pair:
  benchmark: {{concurrencies: ["256", "512"]}}
  roles: {{decode: {{args: {{max-num-seqs: [32, 64]}}}}}}
"""


def as_srtctl_reads(source: Document) -> list[dict[str, Any]]:
    """The variants of a file as PyYAML reads it: plain data, no times or dates kept as text."""
    plain = Document(
        source=source.source, text=source.text, data=yaml.safe_load(source.text), lines={}
    )
    return [dict(variant.data) for variant in variants(plain)]


def by_name(recipes: list[SweptRecipe]) -> dict[str, SweptRecipe]:
    return {recipe.name: recipe for recipe in recipes}


def test_grid_is_a_job_for_each_point_and_its_values_are_text() -> None:
    found = swept_recipes(document(GRID))
    assert [recipe.name for recipe in found] == [
        "tiny-1p1d_conc64_tp4_nodes3",
        "tiny-1p1d_conc64_tp8_nodes3",
        "tiny-1p1d_conc128_tp4_nodes3",
        "tiny-1p1d_conc128_tp8_nodes3",
    ]
    first = found[0]
    assert (first.nodes, [point.concurrency for point in first.points]) == (5, [64])
    sent = yaml.safe_load(first.text)
    assert sent["backend"]["vllm_config"] == {
        "prefill": {"tensor-parallel-size": "4", "seed": "007x"},
        "decode": {"tensor-parallel-size": 8},
    }
    assert sent["resources"]["prefill_nodes"] == "3"
    assert sent["benchmark"]["concurrencies"] == ["64"]
    assert "sweep" not in sent
    assert {recipe.file for recipe in found} == {"tiny.yaml"}


def test_overrides_are_a_job_each_and_the_base_is_none() -> None:
    found = by_name(swept_recipes(document(OVERRIDES)))
    assert [*found] == ["plain", "tiny-1p1d_wide", "tiny-1p1d_pair_0", "tiny-1p1d_pair_1"]
    assert found["tiny-1p1d_wide"].nodes == 6
    assert found["plain"].time_limit_s == 3600
    assert "slurm" not in yaml.safe_load(found["plain"].text)
    second = yaml.safe_load(found["tiny-1p1d_pair_1"].text)
    assert second["schema"] == 2
    assert second["roles"]["decode"]["args"] == {"tensor-parallel-size": 8, "max-num-seqs": 64}
    assert [point.concurrency for point in found["tiny-1p1d_pair_1"].points] == [512]


@pytest.mark.parametrize("text", [GRID, OVERRIDES], ids=["grid", "overrides"])
def test_what_is_sent_is_the_expansion_and_keeps_its_identity(text: str) -> None:
    found = swept_recipes(document(text))
    assert [yaml.safe_load(recipe.text) for recipe in found] == as_srtctl_reads(document(text))
    for recipe in found:
        again = swept_recipe(parse_document(recipe.text, "stored.yaml"))
        assert (again.digest, again.points) == (recipe.digest, recipe.points)
    reworded = "# a comment\n" + text.replace(
        "frontend: {type: dynamo, ", "frontend: {'type': dynamo, "
    )
    assert [recipe.digest for recipe in swept_recipes(document(reworded))] == [
        recipe.digest for recipe in found
    ]


def test_larger_grid_keeps_the_points_it_had() -> None:
    before = {recipe.digest for recipe in swept_recipes(document(GRID))}
    after = swept_recipes(document(edited(GRID, ("conc: [64, 128]", "conc: [32, 64, 128]"))))
    assert len(after) == 6
    assert before < {recipe.digest for recipe in after}


def test_plain_recipe_is_sent_as_it_stands() -> None:
    (recipe,) = swept_recipes(document(V2))
    assert recipe.text == V2


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            edited(GRID, ("tp: [4, 8]", "tp: 4")),
            ["tiny.yaml:17: sweep.tp: must be a list of values, not an integer"],
        ),
        (
            edited(GRID, ("conc: [64, 128]", "conc: [0, 128]")),
            ["tiny.yaml:16: benchmark.concurrencies: a concurrency must be at least 1, got 0"],
        ),
        (
            edited(GRID, ("conc: [64, 128]", "conc: []")),
            ["tiny.yaml:1: makes no jobs (add an override, or a value)"],
        ),
        (
            edited(OVERRIDES, ("  slurm: null\n", "  slurm: {time_limit: soon}\n")),
            [
                (
                    "tiny.yaml:18: slurm.time_limit: 'soon' is not a time such as '2:00:00' or"
                    " '1-12:00:00'"
                )
            ],
        ),
        (
            edited(OVERRIDES, ("  benchmark: {conc", "  slurm: null\n  benchmark: {conc")),
            [
                (
                    "tiny.yaml:4: base.slurm: null removes it for srtctl validate, while srtctl"
                    " apply keeps it (use override_* for what removes keys)"
                )
            ],
        ),
    ],
    ids=["no list", "no load", "no point", "in one override", "deleted by a zip"],
)
def test_problem_of_a_job_is_told_where_it_is_written(text: str, problems: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        swept_recipes(document(text))
    assert [str(each) for each in refused.value.problems] == problems


PUBLISHED = {
    "v1/multi-node/DeepSeek-V4-Pro/H100/vllm/8k1k-mtp.yaml": (9, 2),
    "v1/multi-node/GLM-5/GB300/sglang/glm5-fp8-1k1k-hightpt1-c7500.yaml": (1, 18),
    "v1/single-node/MiniMax-M3/B300/vllm/1k1k_fp4_mtp_off_dpattn.yaml": (2, 1),
    "v1/single-node/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4/B200/vllm/1k1k.yaml": (128, 1),
    "v1/single-node/gpt-oss-120b/H100/vllm/1k1k.yaml": (4, 1),
    "v2/infx__dsv4__gb300-fp4__variants.truncated.yaml": (1, 1),
}
"""Jobs, and nodes of the first; srtctl 1.0.68 itself gave equal jobs for those of v1."""


@pytest.mark.parametrize(("path", "expected"), PUBLISHED.items())
def test_published_template(shared: Path, path: str, expected: tuple[int, int]) -> None:
    source = read_document(shared / "recipes" / path)
    found = swept_recipes(source)
    assert (len(found), found[0].nodes) == expected
    assert len({recipe.digest for recipe in found}) == len(found)
    assert [yaml.safe_load(recipe.text) for recipe in found] == as_srtctl_reads(source)


# --- as text ----------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.just("\n"))
    | st.sampled_from(["1:00:00", "010", "1e3", "yes", "~", "2026-11-30", "  two  blanks ", "a\tb"])
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab-_", min_size=1), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), DATA, min_size=1))
def test_quoted_yaml_is_read_back_by_everybody(data: dict[str, Any]) -> None:
    text = quoted_yaml(data)
    assert yaml.safe_load(text) == data
    assert json.dumps(parse_document(text, "x").data) == json.dumps(data)


def test_what_occurs_twice_is_written_twice() -> None:
    part = {"a": "1"}
    assert quoted_yaml({"x": part, "y": part}) == '"x":\n  "a": "1"\n"y":\n  "a": "1"\n'


# --- the command ------------------------------------------------------------------------------


def test_grid_is_submitted_and_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("grid.yaml")
    path.write_text(GRID, encoding="utf-8")
    words = ["--cluster", "debug", "--command", "true", "--yes", "--no-canary", "--sweep", "s"]
    result = run("submit", "grid.yaml", *words)
    assert result.exit_code == 0, result.output
    path.write_text(edited(GRID, ("conc: [64, 128]", "conc: [32, 64, 128]")), encoding="utf-8")
    assert "Left out: 4 done." in run("submit", "grid.yaml", *words).stdout
    points = json.loads(run("status", "s", "--json").stdout)["points"]
    assert len(points) == 6
    assert {each["state"] for each in points} == {"done"}
    recipe = next(each for each in points if each["recipe"] == "tiny-1p1d_conc64_tp4_nodes3")
    stored = read_document(Path("s/recipes") / f"{recipe['point'].partition('-')[0]}.yaml")
    assert recipe_digest(stored.data) == recipe["point"].partition("-")[0]
    assert run("retry", "grid.yaml", "--sweep", "s", "--yes").stdout.splitlines() == [
        "Left out: 6 done.",
        "Nothing to send.",
    ]


def test_file_named_twice_is_sent_once(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(GRID, encoding="utf-8")
    found = read_recipes_to_send([path, path], Dialect.V2)
    assert (len(found.inputs.recipes), len(found.recipes)) == (1, 4)


# --- specs ------------------------------------------------------------------------------------

QWEN = "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"


@pytest.fixture
def copied(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed Qwen3.8 sweep, so that a test may change it."""
    for name in ("specs", "models", "qwen3.8-2.4t"):
        shutil.copytree(repository / "recipes" / name, tmp_path / "recipes" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("dialect", ["v1", "v2"])
def test_spec_stands_for_the_recipes_rendered_from_it(dialect: str) -> None:
    words = ["--cluster", "debug", "--command", "true", "--yes", "--no-canary", "--sweep", "s"]
    result = run("submit", QWEN, *words, "--dialect", dialect)
    assert result.exit_code == 0, result.output
    points = json.loads(run("status", "s", "--json").stdout)["points"]
    assert {each["state"] for each in points} == {"done"}
    files = {each["file"] for each in points}
    folder = Path("recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg") / dialect
    assert files == {str(path) for path in folder.rglob("*.yaml")}
    assert len(files) == 24 + 18
    again = run("submit", str(folder), *words)
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines()[-1] == "Nothing to send."


def test_spec_whose_recipes_are_not_what_it_gives_is_refused(copied: Path) -> None:
    spec = copied / QWEN
    text = spec.read_text(encoding="utf-8")
    spec.write_text(f"# reworded\n{text}", encoding="utf-8")  # another header, the same recipes
    words = ["--cluster", "debug", "--command", "true", "--dry-run"]
    assert run("submit", QWEN, *words).exit_code == 0
    spec.write_text(edited(text, ("headroom_sequences: 16", "headroom_sequences: 8")), "utf-8")
    result = run("submit", QWEN, *words)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.splitlines()[-1] == (
        f"error: {QWEN}: 34 of its 42 recipes are not what it gives now"
        f" (run pdrecipe generate {QWEN} --dialect v2 and look at them)"
    )
