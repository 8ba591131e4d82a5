"""The committed specs give the published recipes by value, names and file names included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.generation.generation import plan_generation
from generator.recipe.recipe import Dialect

DATA = Path(__file__).parent / "data" / "published"
QWEN38: dict[str, Any] = json.loads((DATA / "qwen38_article.json").read_text())
QWEN35: dict[str, Any] = json.loads((DATA / "qwen35_gb200.json").read_text())
QWEN38_SPEC = "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
QWEN35_SPEC = "recipes/specs/qwen3.5-397b-gb200-8k1k.yaml"

# Flags a recipe may leave out or write at the engine's default (the article does both).
_DEFAULTS = {"pipeline-parallel-size": 1, "data-parallel-size": 1}


def rendered(spec: Path, out: Path) -> dict[str, Any]:
    """Every v1 document a spec gives, by path below ``out``."""
    generation = plan_generation(spec, Dialect.V1, out)
    return {
        str(drift.path.relative_to(out)): yaml.safe_load(drift.after) for drift in generation.files
    }


@pytest.fixture(scope="module")
def qwen38(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return rendered(repository / QWEN38_SPEC, tmp_path_factory.mktemp("qwen38"))


@pytest.fixture(scope="module")
def qwen35(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return rendered(repository / QWEN35_SPEC, tmp_path_factory.mktemp("qwen35"))


def by_value(value: Any) -> Any:
    """A document for comparison: JSON text opened, flags at their default left out."""
    if isinstance(value, dict):
        return {key: by_value(item) for key, item in value.items() if _DEFAULTS.get(key) != item}
    if isinstance(value, str) and value.startswith("{"):
        return json.loads(value)
    return value


def published_qwen38(row: dict[str, Any]) -> dict[str, Any]:
    """One of the eight recipes, put together from the article's table and its common part."""
    common = QWEN38["recipe_common"]
    speculation = common["args_with_mtp_both_roles"] if row["mtp"] else {}
    block = {"block-size": row["block_size"]} if row["block_size"] else {}
    sizes = {
        "max-num-seqs": row["decode_max_num_seqs"],
        "max-cudagraph-capture-size": row["decode_capture"],
        "max-num-batched-tokens": row["decode_batched_tokens"],
    }
    resources = dict(common["resources"])
    configs = {}
    for role, own in (
        ("prefill", common["args_prefill"]),
        ("decode", {**common["args_decode"], **sizes}),
    ):
        workers, tensor, data = published_layout(row[role])
        nodes = row["nodes"][0 if role == "prefill" else 1]
        resources |= {
            f"{role}_nodes": nodes,
            f"{role}_workers": workers,
            f"gpus_per_{role}": tensor * data,
        }
        configs[role] = {
            **common["args_both_roles"],
            **own,
            **speculation,
            **block,
            "tensor-parallel-size": tensor,
            "data-parallel-size": data,
        }
    return {
        "name": common["name"].replace("<file>", row["file"]),
        "identity": common["identity"],
        "slurm": {"time_limit": row["time_limit"]},
        "model": common["model"],
        "dynamo": common["dynamo"],
        "resources": resources,
        "frontend": common["frontend"],
        "backend": {
            "type": "vllm",
            "connector": common["connector"],
            "prefill_environment": common["environment_both_roles"],
            "decode_environment": common["environment_both_roles"],
            "vllm_config": configs,
        },
        "benchmark": {**common["benchmark"], "concurrencies": row["concurrencies"]},
    }


def published_layout(text: str) -> tuple[int, int, int]:
    """Workers, TP and DP of the three shapes the article's table uses."""
    return {
        "1xTEP8": (1, 8, 1),
        "1xTP4DP2+EP": (1, 4, 2),
        "1xTP2DP4+EP": (1, 2, 4),
        "2xTP2DP4+EP": (2, 2, 4),
        "3xTP2DP4+EP": (3, 2, 4),
        "4xTP2DP4+EP": (4, 2, 4),
        "1xTP4DP4+EP": (1, 4, 4),
    }[text]


@pytest.mark.parametrize("row", QWEN38["recipes"], ids=lambda row: row["file"])
def test_qwen38_recipe(row: dict[str, Any], qwen38: dict[str, Any]) -> None:
    assert by_value(qwen38[f"{row['file']}.yaml"]) == by_value(published_qwen38(row))


@pytest.mark.parametrize(
    "file", ["1xtp8-1xtp8-mtp-cc1-4", "4xtp2dep4-1xtp4dep4-cc2560"], ids=lambda file: file
)
def test_qwen38_recipe_given_in_full(file: str, qwen38: dict[str, Any], shared: Path) -> None:
    published = yaml.safe_load((shared / "truth" / f"qwen38_{file}.v1.yaml").read_text())
    assert by_value(qwen38[f"{file}.yaml"]) == by_value(published)


def test_qwen38_spec_gives_these_recipes_accuracy_runs_probes_and_studies(
    qwen38: dict[str, Any],
) -> None:
    files = [row["file"] for row in QWEN38["recipes"]]
    accuracy = {f"accuracy/{file}-acc.yaml" for file in files}
    probes = {name for name in qwen38 if name.startswith("probe/")}
    studies = {name for name in qwen38 if name.startswith(("study-prefill/", "study-decode/"))}
    assert set(qwen38) - probes - studies == {f"{file}.yaml" for file in files} | accuracy
    assert len(probes) == len(QWEN38["runs"])


def test_qwen38_spec_is_short(repository: Path) -> None:
    assert len((repository / QWEN38_SPEC).read_text().splitlines()) <= 120


def published_qwen35() -> Iterator[tuple[str, dict[str, Any]]]:
    for row in QWEN35["files"]:
        recipe = json.loads(json.dumps(QWEN35["full_example_4xdep2-1xdep8"]))
        recipe["name"] = row["name"]
        recipe["resources"] |= {
            "prefill_workers": row["prefill_workers"],
            "prefill_nodes": row["prefill_nodes"],
        }
        recipe["benchmark"] = row["benchmark"]
        capture = row["decode_max_cudagraph_capture_size"]
        if capture is not None:
            recipe["backend"]["vllm_config"]["decode"]["max-cudagraph-capture-size"] = capture
        yield row["file"], recipe


@pytest.mark.parametrize(
    ("file", "recipe"), [pytest.param(*case, id=case[0]) for case in published_qwen35()]
)
def test_qwen35_recipe(file: str, recipe: dict[str, Any], qwen35: dict[str, Any]) -> None:
    assert by_value(qwen35[file]) == by_value(recipe)


def test_qwen35_spec_gives_these_20_recipes(qwen35: dict[str, Any]) -> None:
    assert set(qwen35) == {row["file"] for row in QWEN35["files"]}
