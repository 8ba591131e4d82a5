"""Override files and grids become the jobs that srt-slurm 1.0.68 makes of them.

The expected values are what its own functions gave for the same text.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from generator.documents import Document, parse_document, read_document
from generator.errors import InvalidInput
from generator.recipe.expansion import Variant, variant_count, variants

OVERRIDE = Path(__file__).resolve().parent / "data/recipes/override.yaml"


def document(text: str) -> Document:
    return parse_document(text, "recipe.yaml")


def expanded(text: str) -> list[Variant]:
    return list(variants(document(text)))


@pytest.fixture(scope="module")
def jobs() -> dict[str, Variant]:
    return {variant.suffix: variant for variant in variants(read_document(OVERRIDE))}


def flags(variant: Variant) -> dict[str, Any]:
    found: dict[str, Any] = variant.data["backend"]["vllm_config"]["aggregated"]
    return found


def test_overrides_come_by_name_then_zip_groups(jobs: dict[str, Variant]) -> None:
    assert [(suffix, variant.name) for suffix, variant in jobs.items()] == [
        ("bare", "tiny-bare"),
        ("grid_concurrency8_labela_sizes[1, 2]", "tiny_grid_concurrency8_labela_sizes[1, 2]"),
        ("grid_concurrency16_labela_sizes[1, 2]", "tiny_grid_concurrency16_labela_sizes[1, 2]"),
        ("pair_0", "tiny_pair_0"),
        ("pair_1", "tiny_pair_1"),
    ]


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        (
            "bare",
            {
                "tensor-parallel-size": 4,
                "cudagraph-capture-sizes": [8],
                "max-num-seqs": 8,
                "nested": {"new": None},
            },
        ),
        (
            "grid_concurrency16_labela_sizes[1, 2]",
            {
                "tensor-parallel-size": 4,
                "cudagraph-capture-sizes": [1, 2],
                "max-num-seqs": "16",
                "served-model-name": "tiny-16-a",
            },
        ),
        (
            "pair_1",
            {
                "tensor-parallel-size": 4,
                "cudagraph-capture-sizes": [1, 64],
                "max-num-seqs": 64,
                "enforce-eager": True,
                "max-model-len": 4096,
            },
        ),
    ],
)
def test_values_are_srt_slurms(
    jobs: dict[str, Variant], suffix: str, expected: dict[str, Any]
) -> None:
    assert flags(jobs[suffix]) == expected


def test_null_deletes(jobs: dict[str, Variant]) -> None:
    assert jobs["bare"].data["environment"] == {"KEEP": "1"}
    assert jobs["pair_0"].data["environment"] == {"KEEP": "1"}


def test_deletion_that_apply_does_not_make_is_told(jobs: dict[str, Variant]) -> None:
    assert jobs["pair_0"].kept_deletions == (("environment", "DROP"),)
    assert jobs["bare"].kept_deletions == ()


@pytest.mark.parametrize(
    ("suffix", "path", "text"),
    [
        ("bare", ("name",), "name: tiny-bare"),
        ("bare", ("model", "path"), "model: {path:"),
        ("bare", ("backend", "vllm_config", "aggregated", "max-num-seqs"), "max-num-seqs: 8"),
        (
            *("bare", ("backend", "vllm_config", "aggregated", "cudagraph-capture-sizes", 0)),
            "cudagraph-capture-sizes: [8]",
        ),
        (
            *("bare", ("backend", "vllm_config", "aggregated", "nested", "new")),
            "nested: {new: null}",
        ),
        (
            "grid_concurrency8_labela_sizes[1, 2]",
            ("backend", "vllm_config", "aggregated", "max-num-seqs"),
            'max-num-seqs: "{concurrency}"',
        ),
        ("pair_1", ("name",), "zip_override_pair:"),
        (
            *("pair_1", ("backend", "vllm_config", "aggregated", "max-num-seqs")),
            "max-num-seqs: [32, 64]",
        ),
        (
            *("pair_1", ("backend", "vllm_config", "aggregated", "max-model-len")),
            "max-model-len: 4096",
        ),
    ],
)
def test_lines_are_where_values_are_written(
    jobs: dict[str, Variant], suffix: str, path: tuple[str | int, ...], text: str
) -> None:
    variant = jobs[suffix]
    line = variant.document.text.splitlines()[variant.line(path) - 1]
    assert line.strip().startswith(text)


def test_problem_names_the_place_in_the_file(jobs: dict[str, Variant]) -> None:
    path = ("backend", "vllm_config", "aggregated", "max-num-seqs")
    found = jobs["pair_1"].problem(path, "too many")
    place = "zip_override_pair.backend.vllm_config.aggregated.max-num-seqs[1]"
    assert (found.path, found.source) == (place, str(OVERRIDE))


def test_expansion_changes_nothing_it_is_given() -> None:
    parsed = read_document(OVERRIDE)
    assert len(list(variants(parsed))) == 5
    assert parsed.data == read_document(OVERRIDE).data


def test_grid_is_the_whole_product_of_strings() -> None:
    text = "name: g\nresources: {gpus_per_agg: '{tp}'}\nsweep: {tp: [1, 2], ep: [4, 8, true]}\n"
    found = expanded(text)
    assert [variant.suffix for variant in found] == [
        *("tp1_ep4", "tp1_ep8", "tp1_epTrue", "tp2_ep4", "tp2_ep8", "tp2_epTrue")
    ]
    assert found[5].data == {"name": "g_tp2_epTrue", "resources": {"gpus_per_agg": "2"}}
    assert found[5].parameters == {"tp": 2, "ep": True}


@pytest.mark.parametrize(
    ("template", "sweep", "expected"),
    [
        ("'{a}'", "{a: [1]}", "1"),
        ("'{a}{a}-{b}'", "{a: [1], b: [0.5]}", "11-0.5"),
        ("'{a}'", "{a: ['{b}'], b: [2]}", "2"),  # one after the other
        ("'{a}'", "{b: [2], a: ['{b}']}", "{b}"),
        ("'{a}'", "{a: [[1, 2]]}", [1, 2]),
        ("'x{a}'", "{a: [[1, 2]]}", "x1,2"),
        ("'{other} {job_id}'", "{a: [1]}", "{other} {job_id}"),
        ("['{a}', 3]", "{a: [1]}", ["1", 3]),
        ("'{a}'", "{a: [null]}", "None"),
        ("'{a}'", "{a: [1.0]}", "1.0"),
    ],
)
def test_placeholders(template: str, sweep: str, expected: object) -> None:
    (variant,) = expanded(f"name: n\nvalue: {template}\nsweep: {sweep}\n")
    assert variant.data["value"] == expected


def test_plain_recipe_is_its_only_variant() -> None:
    (variant,) = expanded("name: plain\nmodel: {path: x}\n")
    assert (variant.name, variant.suffix) == ("plain", "")
    assert variant.data == {"name": "plain", "model": {"path": "x"}}


def test_layout_is_said_once_for_an_override_file() -> None:
    (variant,) = expanded("schema: 2\nbase: {name: n, a: 1}\noverride_x: {a: 2}\n")
    assert variant.data == {"schema": 2, "name": "n_x", "a": 2}
    assert (variant.line(("schema",)), variant.line(("a",))) == (1, 3)


def test_zip_items_that_are_mappings_are_merged_as_they_are() -> None:
    text = "base: {name: n, a: {x: 1, y: 2}}\nzip_override_z: {a: [{x: [7, 8]}, {x: 9}]}\n"
    first, second = expanded(text)
    assert first.data["a"] == {"x": [7, 8], "y": 2}
    assert second.data["a"] == {"x": 9, "y": 2}
    assert first.origin(("a", "x")) == ("zip_override_z", "a", 0, "x")
    assert first.origin(("a", "y")) == ("base", "a", "y")


def test_base_alone_is_no_job() -> None:
    assert expanded("base: {name: n}\n") == []


def test_a_name_for_all_of_a_group_tells_none_apart() -> None:
    text = "base: {name: n}\nzip_override_z: {name: same, a: [1, 2]}\n"
    assert [variant.name for variant in expanded(text)] == ["n_z_0", "n_z_1"]
    text = "base: {name: n}\nzip_override_z: {name: [x, y]}\n"
    assert [variant.name for variant in expanded(text)] == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "recipe.yaml:1: a recipe is a mapping, not a list"),
        ("base: 3\noverride_a: {}\n", "recipe.yaml:1: base: must be a mapping, not an integer"),
        (
            "base: {}\noverride_a: null\n",
            "recipe.yaml:2: override_a: must be a mapping, not null",
        ),
        (
            "base: {}\nzip_override_a: {x: 1}\n",
            (
                "recipe.yaml:2: zip_override_a: has no list to zip "
                "(give at least one key a list of values, or call it override_*)"
            ),
        ),
        (
            "base: {}\nzip_override_a: {x: []}\n",
            "recipe.yaml:2: zip_override_a.x: an empty list cannot be zipped",
        ),
        (
            "base: {}\nzip_override_a:\n  x: [1, 2]\n  y: {z: [1, 2, 3], u: [1]}\n",
            (
                "recipe.yaml:4: zip_override_a.y.z: has 3 values beside a list of 2 "
                "(all lists must be as long, or hold one item)"
            ),
        ),
        ("name: n\nsweep: 3\n", "recipe.yaml:2: sweep: must be a mapping of names to lists, "),
        (
            "name: n\nsweep:\n  a: [1]\n  b: 8x16\n",
            "recipe.yaml:4: sweep.b: must be a list of values, not a string",
        ),
    ],
)
def test_what_cannot_be_expanded_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        variants(document(text))
    assert str(raised.value).startswith(problem)
    with pytest.raises(InvalidInput):
        variant_count(document(text))


def test_fault_of_a_grid_in_an_override_is_raised_on_the_way() -> None:
    found = variants(document("base: {name: n}\noverride_a: {b: 1}\noverride_z: {sweep: 3}\n"))
    assert next(found).name == "n_a"
    with pytest.raises(InvalidInput, match=r"override_z\.sweep"):
        next(found)


def test_count_without_expansion(jobs: dict[str, Variant]) -> None:
    assert variant_count(read_document(OVERRIDE)) == len(jobs)
    grid = "".join(f"  p{index}: [1, 2, 3, 4, 5, 6, 7, 8]\n" for index in range(9))
    text = f"name: n\nsweep:\n{grid}"
    assert variant_count(document(text)) == 8**9
    assert next(variants(document(text))).name.startswith("n_p01_")  # lazily


# Jobs of files with more than one, as srtctl 1.0.68 counts them in a dry run.
REAL_GRIDS = [
    ("v1/multi-node/DeepSeek-V4-Pro/H100/vllm/8k1k-mtp.yaml", 9),
    ("v1/single-node/DeepSeek-R1/B300/sglang/1k1k-mtp.yaml", 256),
    ("v1/single-node/Kimi-K2.5/B200/sglang/1k1k.yaml", 256),
    ("v1/single-node/MiniMax-M3/B300/vllm/1k1k_fp4_mtp_off_dpattn.yaml", 2),
    ("v1/single-node/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4/B200/trtllm/8k1k.yaml", 64),
    ("v1/single-node/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4/B200/vllm/1k1k.yaml", 128),
    ("v1/single-node/gpt-oss-120b/H100/vllm/1k1k.yaml", 4),
    ("v2/infx__dsv4__gb300-fp4__variants.truncated.yaml", 1),
]


@pytest.mark.parametrize(("file", "count"), REAL_GRIDS)
def test_real_grids(shared: Path, file: str, count: int) -> None:
    found = list(variants(read_document(shared / "recipes" / file)))
    assert len(found) == count == variant_count(read_document(shared / "recipes" / file))
    assert len({variant.name for variant in found}) == count


def test_all_real_recipes_expand_in_no_time(shared: Path) -> None:
    documents = [read_document(file) for file in sorted((shared / "recipes").rglob("*.yaml"))]
    start = time.perf_counter()
    count = sum(1 for each in documents for _ in variants(each))
    assert (len(documents), count) == (65, 777)
    assert time.perf_counter() - start < 1  # seconds; 0.01 measured
