"""v1 recipes as layout v2: comments and order stay, the proof holds, and doubt is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from generator.documents import Document, parse_document, read_document
from generator.errors import InvalidInput
from generator.migration.migration import migrate_document
from generator.normal_form import normal_form
from generator.recipe.expansion import variants
from generator.recipe_diff.difference import compare
from generator.validation import problems
from generator.yaml_text.entries import CannotSplit, TextEntries
from tests.small_specs import run

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURES = REPOSITORY / "tests/data/recipes"
OWN = [
    path.relative_to(REPOSITORY)
    for path in sorted((REPOSITORY / "recipes").rglob("*.yaml"))
    if "v1" in path.parts
]


def migrated(text: str) -> str:
    return migrate_document(parse_document(text, "recipe.yaml")).text


def comments(text: str) -> set[str]:
    return {found.strip() for found in re.findall(r"(?:^|\s)#(.*)$", text, re.MULTILINE)}


def refusals(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        migrated(text)
    return [str(problem) for problem in caught.value.problems]


V1 = """\
# What this is for
name: a  # short

# where it runs
resources:
  gpu_type: gb300
  gpus_per_node: 4
  # prefill
  prefill_nodes: 2   # two
  prefill_workers: 1
  decode_nodes: 0
  decode_workers: 2  # beside prefill

infra:
  # busy
  etcd_nats_dedicated_node: true  # a node more
  nats_max_payload_mb: 32

frontend:
  type: sglang
  dedicated_node: true  # alone

backend:  # the engine
  type: vllm
  connector: null
  set_cuda_visible_devices: true
  kv_events_config: true

  prefill_environment:
    A: "1"
  # flags
  vllm_config:
    prefill:
      # sizes
      tensor-parallel-size: 4

      max-num-seqs: 8   # few
      # max-model-len: 1
    decode:
      tensor-parallel-size: 4
      compilation-config: >-
        {"cudagraph_mode":
        "FULL"}

dynamo:
  hash: abc123  # pinned
  install: true
benchmark: {type: sa-bench, isl: 8, osl: 8, concurrencies: [1, 2], client_placement: last_decode,
  backend: dynamo}  # all
# the end
"""

V2 = """\
# What this is for
schema: 2
name: a  # short

# where it runs
resources:
  gpu_type: gb300
  gpus_per_node: 4

# busy
# a node more
services:
  - name: etcd
    type: etcd
    placement:
      node: dedicated
  - name: nats
    type: nats
    placement:
      node: dedicated
    options:
      max_payload_mb: 32

frontend:
  type: sglang-router
  placement:
    node: dedicated  # alone

# the engine
engine:
  type: vllm
  connector: null
  set_visible_devices: true
# flags
roles:
  prefill:
    # prefill
    nodes: 2   # two
    workers: 1
    env:
      A: "1"
    kv_events: true
    args:
      # sizes
      tensor-parallel-size: 4

      max-num-seqs: 8   # few
      # max-model-len: 1
  decode:
    nodes: colocate
    workers: 2  # beside prefill
    kv_events: true
    args:
      tensor-parallel-size: 4
      compilation-config: >-
        {"cudagraph_mode":
        "FULL"}

dynamo:
  source:
    git: https://github.com/ai-dynamo/dynamo.git
    rev: abc123  # pinned
  install: true
benchmark:
  # all
  type: sa-bench
  isl: 8
  osl: 8
  concurrencies: [1, 2]
  placement:
    node: last_decode
  # not in schema 2: backend: dynamo
# the end
"""


def test_everything_at_once() -> None:
    assert migrated(V1) == V2


@pytest.mark.parametrize("path", OWN, ids=str)
def test_own_recipes(path: Path) -> None:
    document = read_document(REPOSITORY / path)
    migration = migrate_document(document)
    assert migration.compared > 40
    left = dict(migration.left_out)
    expected = {"benchmark.backend": "dynamo", "benchmark.endpoint": "/v1/chat/completions"}
    assert left in ({}, expected)
    assert comments(document.text) <= comments(migration.text)
    sections = [key for key in yaml.safe_load(document.text) if key != "backend"]
    assert [key for key in yaml.safe_load(migration.text) if key in sections] == sections
    assert problems(parse_document(migration.text, str(path)), "recipe-v2") == []
    twin = Path(*("v2" if part == "v1" else part for part in path.parts))
    (old,) = variants(parse_document(migration.text, str(path)))
    (new,) = variants(read_document(REPOSITORY / twin))
    assert compare(normal_form(old), normal_form(new)).is_empty


def test_every_shipped_v1_recipe(shared: Path) -> None:
    files = sorted((shared / "recipes/v1").rglob("*.yaml"))
    values = jobs = 0
    for file in files:
        document = read_document(file)
        migration = migrate_document(document)
        values, jobs = values + migration.compared, jobs + migration.jobs
        assert comments(document.text) <= comments(migration.text), file
        first = next(iter(variants(parse_document(migration.text, file.name))))
        read = Document(source=file.name, text="", data=first.data, lines={})
        assert problems(read, "recipe-v2") == [], file
    assert (len(files), jobs, values) == (56, 768, 37207)


def test_override_file() -> None:
    document = read_document(FIXTURES / "override.yaml")
    migration = migrate_document(document)
    assert migration.jobs == 5
    data = yaml.safe_load(migration.text)
    assert list(data) == [
        "schema",
        "base",
        "override_grid",
        "override_bare",
        "zip_override_pair",
    ]
    assert data["zip_override_pair"]["roles"]["agg"]["args"]["max-num-seqs"] == [32, 64]
    assert data["override_bare"]["environment"] == {"DROP": None}


@pytest.mark.parametrize(
    ("v1", "v2"),
    [
        ("backend: {}", "engine: sglang"),
        ("backend:", "engine: sglang"),
        ("backend: {type: mocker}  # none", "engine: mocker"),
        ("infra: {etcd_nats_dedicated_node: false}", "node: infra"),
        ("dynamo: {version: 1.2.0, cargo_patches: [a]}", "pypi: 1.2.0"),
        ("benchmark: {client_dedicated_node: 'yes'}", "node: dedicated"),
        ("frontend: {dedicated_node: false, orchestrator_placement: head}", "node: head"),
        ("backend: {kv_events_config: {prefill: {topic: a}}}", "topic: a"),
        ("backend: {type: vllm, mooncake_kv_store: {env: {A: b}}}", "type: mooncake-master"),
    ],
)
def test_single_keys(v1: str, v2: str) -> None:
    text = f"name: a\nresources: {{gpu_type: h100, prefill_nodes: 1, prefill_workers: 1}}\n{v1}\n"
    assert v2 in migrated(text)


@pytest.mark.parametrize(
    "section",
    [
        "frontend:\n  # 1\n  dedicated_node: true  # 2\n  # 3\n  orchestrator_placement: head # 4",
        "dynamo:\n  # 1\n  hash: null  # 2\n  # 3\n  version: 1.2.0 # 4",
        "infra:  # 1\n  nats_max_payload_mb: 32  # 2\n  # 3\n# 4",
        "infra:\n  # 1\n  etcd_nats_dedicated_node: true  # 2\n  # 3\n  # 4",
        "backend:  # 1\n  # 2\n  type: vllm  # 3\n  # 4",
        "backend:\n  type: vllm\n  # 1\n  vllm_config:  # 2\n    prefill:  # 3\n      a: 1 # 4",
        "backend:\n  type: vllm\n  # 1\n  kv_events_config: true # 2\n  # 3\n# 4",
        "benchmark: # 1\n  # 2\n  backend: dynamo  # 3\n  # 4",
    ],
)
def test_no_comment_is_lost(section: str) -> None:
    resources = "resources: {gpu_type: h100, prefill_nodes: 1, prefill_workers: 1}"
    text = f"name: a\n{resources}\n{section}\n"
    result = migrated(text if "\nbackend:" in text else f"{text}backend: {{type: vllm}}\n")
    assert all(f"# {number}" in result for number in range(1, 5))


def test_a_file_may_have_windows_line_ends() -> None:
    text = migrated(V1.replace("\n", "\r\n"))
    assert text == V2.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "schema: 2\nname: a\nresources: {}\nengine: vllm\nroles: {}\n",
            "is a recipe of layout v2",
        ),
        ("a: 1\n", "is not an srt-slurm recipe"),
        ("name: a\nresources: &r {gpu_type: h100}\nbackend: {}\n", "has an anchor"),
        (
            "x: &r {gpu_type: h100}\nname: a\nresources: *r\nbackend: {}\n",
            "is an alias",
        ),
        ("name: a\nresources: {gpu_type: h100, typo_nodes: 1}\nbackend: {}\n", None),
        ("name: a\nmodel: {a: 1}\nresources:\n  <<: {a: 1}\nbackend: {}\n", "merge key"),
        ("{name: a, resources: {}, backend: {}}", "no mapping in block style"),
    ],
)
def test_refusals(text: str, problem: str | None) -> None:
    if problem is None:  # a key of neither layout is carried over and means the same
        assert "typo_nodes" in migrated(text)
        return
    (only,) = refusals(text)
    assert problem in only


def test_anchors_that_change_places_are_refused() -> None:
    text = (
        "name: a\nresources:\n  gpu_type: h100\n  prefill_nodes: &n 1\n  decode_nodes: 1\n"
        "benchmark: {repeat: *n}\nbackend: {type: vllm}\n"
    )
    (only,) = refusals(text)
    assert "its v2 form cannot be read" in only
    assert "write the values out" in only


def test_text_is_given_back_unchanged_where_nothing_is_opened() -> None:
    for text in (V1, V2, "a:\n- 1\n# c\n- 2\n\nb: |\n  x\n\n  # y\nc:\n    d: 1\n    # e\n"):
        lines = [line for entry in TextEntries(text).entries() for line in entry.lines()]
        assert "\n".join([*lines, ""]) == text


def test_lists_are_no_sections() -> None:
    with pytest.raises(CannotSplit):
        TextEntries("- 1\n")


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.yaml"
    path.write_text(V1, encoding="utf-8")
    return path


@pytest.mark.usefixtures("recipe")
def test_prints_the_recipe_and_beside_it_the_proof() -> None:
    result = run("migrate", "a.yaml")
    assert result.exit_code == 0
    assert result.stdout == V2
    assert result.stderr.splitlines() == [
        "30 values compared, 0 differ.",
        "schema 2 has no key for benchmark.backend: 'dynamo' (it stays as a comment)",
    ]


def test_writes_in_place(recipe: Path) -> None:
    result = run("migrate", "a.yaml", "--write")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("a.yaml: schema 2\n30 values compared, 0 differ.\n")
    assert recipe.read_text("utf-8") == V2
    assert [path.name for path in recipe.parent.iterdir()] == ["a.yaml"]


def test_writes_elsewhere(recipe: Path) -> None:
    assert run("migrate", "a.yaml", "--out", "deep/b.yaml").exit_code == 0
    assert Path("deep/b.yaml").read_text("utf-8") == V2
    assert recipe.read_text("utf-8") == V1


@pytest.mark.usefixtures("recipe")
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["a.yaml", "--write", "--out", "b.yaml"], 2, "not both"),
        (["none.yaml"], 3, "no such file"),
        (["."], 3, "is a folder"),
    ],
)
def test_wrong_calls(arguments: list[str], exit_code: int, message: str) -> None:
    result = run("migrate", *arguments)
    assert result.exit_code == exit_code
    assert message in result.stderr
    assert result.stdout == ""


def test_a_refused_file_stays_as_it_is(recipe: Path) -> None:
    recipe.write_text("schema: 2\n" + V1, encoding="utf-8")
    assert run("migrate", "a.yaml", "--write").exit_code == 3
    assert recipe.read_text("utf-8") == "schema: 2\n" + V1
