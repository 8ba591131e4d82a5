"""pdrecipe check and explain as they are typed: arguments, exit codes, fixes, bad input."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from generator.cli import main
from tests.check_cases import text_of
from tests.conftest import REPOSITORY

CLEAN = {"recipe": "plain"}
INFO = {"recipe": "plain", "set": {"resources/decode_nodes": 3}}
WARNING = {"recipe": "plain", "set": {"benchmark/concurrencies": [300]}}
ERROR = {"recipe": "plain", "set": {"resources/decode_nodes": 1}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["check", *arguments], input=stdin)


def write(path: str, case: dict[str, Any]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text_of(case), encoding="utf-8")


@pytest.mark.parametrize(
    ("case", "options", "code"),
    [
        (CLEAN, (), 0),
        (INFO, (), 0),
        (INFO, ("--strict",), 0),
        (INFO, ("--threshold", "info"), 10),
        (WARNING, (), 0),
        (WARNING, ("--strict",), 10),
        (WARNING, ("--threshold", "warning"), 10),
        (ERROR, (), 10),
        (ERROR, ("--ignore", "top"), 0),
        (ERROR, ("--ignore", "TOP001,TOP002"), 0),
        (ERROR, ("--select", "CON"), 0),
        (ERROR, ("--select", "CON", "--select", "TOP002"), 10),
    ],
)
def test_exit_code(case: dict[str, Any], options: tuple[str, ...], code: int) -> None:
    write("a.yaml", case)
    assert run("a.yaml", *options).exit_code == code


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("a.yaml", "--strict", "--threshold", "info"),
        ("a.yaml", "--dry-run"),
        ("a.yaml", "--select", "NOPE"),
        ("a.yaml", "--format", "xml"),
    ],
)
def test_usage(options: tuple[str, ...]) -> None:
    write("a.yaml", CLEAN)
    result = run(*options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_text() -> None:
    write("a.yaml", ERROR)
    result = run("a.yaml")
    assert result.stdout == (
        "a.yaml:14: error TOP002 roles.decode.nodes: 2 x 4 = 8 GPUs on 1 x 4 = 4"
        " (use 2 nodes, or fewer workers)\n"
    )
    assert result.stderr == (
        "1 recipe: 1 error, 0 warnings, 0 info; memory not checked for 1 recipe: model or flags not"
        " known or not modelled\n"
    )


@pytest.mark.parametrize(
    ("case", "options", "is_said"),
    [
        ({"recipe": "plain"}, (), True),
        ({"recipe": "sglang"}, (), True),
        ({"recipe": "pair"}, (), False),
        ({"recipe": "plain"}, ("--select", "TOP"), False),
        ({"recipe": "pair", "set": {"roles/decode/args/max-num-seqs": 0}}, (), True),
    ],
)
def test_memory_that_was_not_checked_is_said(
    case: dict[str, Any], options: tuple[str, ...], *, is_said: bool
) -> None:
    write("a.yaml", case)
    assert ("memory not checked for 1 recipe: " in run("a.yaml", *options).stderr) is is_said
    document = json.loads(run("a.yaml", *options, "--format", "json").stdout)
    assert document["summary"]["memory_not_checked"] == int(is_said)


@pytest.mark.parametrize(
    ("share", "rule", "says"),
    [
        (0.3, "MEM008", "weights of 169.28 GiB a GPU are above 0.3 x 276.62 GiB = 82.99 GiB"),
        (0.62, "MEM001", "takes 0.42 GiB of a GPU, but no KV cache is left"),
        (0.62, "MEM009", "leave nothing of 0.62 x 276.62 GiB = 171.50 GiB (as measured)"),
    ],
)
def test_weights_that_do_not_fit_in_a_recipe_of_ours(share: float, rule: str, says: str) -> None:
    name = "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2/1xtp2dep4-1xtp8-mtp-cc32-64.yaml"
    flag = "      max-num-seqs: 80"
    text = (REPOSITORY / name).read_text("utf-8")
    assert flag in text
    text = text.replace(flag, f"      gpu-memory-utilization: {share}\n{flag}")
    Path("a.yaml").write_text(text, encoding="utf-8")
    result = run("a.yaml")
    assert [line for line in result.stdout.splitlines() if f" {rule} " in line and says in line]
    assert result.exit_code == 10


@pytest.mark.parametrize("format_", ["json", "sarif"])
def test_documents(format_: str) -> None:
    write("a.yaml", ERROR)
    result = run("a.yaml", "--format", format_)
    assert json.loads(result.stdout)["version"] in (1, "2.1.0")
    assert result.exit_code == 10


def test_standard_input() -> None:
    result = run("-", stdin=text_of(ERROR))
    assert result.stdout.startswith("<stdin>:14: error TOP002")


def test_revision_of_git() -> None:
    write("one/a.yaml", ERROR)
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "a")):
        subprocess.run(["git", *command], check=True)
    write("one/a.yaml", CLEAN)
    assert run("one").exit_code == 0
    result = run("HEAD:one/a.yaml")
    assert result.stdout.startswith("HEAD:one/a.yaml:14: error TOP002")
    result = run("HEAD:one", "--fix")
    assert result.exit_code == 10


def test_a_model_that_the_recipe_does_not_name() -> None:
    changes = {"model/path": "here", "identity": {}, "roles/decode/args/block-size": 32}
    write("a.yaml", {"recipe": "pair", "set": changes})
    assert "MEM004" not in run("a.yaml").stdout
    config = REPOSITORY / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
    for model in (str(config), "Qwen--Qwen3.8-2.4T-A95B-NVFP4", "x/Qwen3.8-2.4T-A95B-NVFP4"):
        assert "MEM004" in run("a.yaml", "--model", model).stdout
    result = run("a.yaml", "--model", "Qwen3.8-2.4T")
    assert result.exit_code == 3
    assert "no known model 'Qwen3.8-2.4T'" in result.stderr


def test_a_model_in_a_folder_of_this_machine() -> None:
    config = REPOSITORY / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
    changes = {"model/path": str(config), "identity": {}, "roles/decode/args/block-size": 32}
    write("a.yaml", {"recipe": "pair", "set": changes})
    assert "MEM004" in run("a.yaml").stdout


# --- fixes ------------------------------------------------------------------------------------

BROKEN = """\
# A recipe with slips. # really
schema: 2
name: slips   # its name
model: {path: "hf:someone/Some-Model", container: "vllm/vllm-openai:v0.27.1", precision: fp8}
dynamo: {install: false}
resources: {gpu_type: h200, gpus_per_node: 8}
engine: vllm
roles:
  agg:
    nodes: 1
    env:
      NCCL_CUMEM_ENABLE: 1   # a number
    workers: 1
    args:
      tensor-parallel-size: "8"
      data-parallel-size: 1
      max-cudagraph-capture-size: 8196   # nearly
"""
FIXED = BROKEN.replace("ENABLE: 1 ", "ENABLE: '1' ").replace('"8"', "8").replace("8196 ", "8192 ")


def test_fix() -> None:
    Path("a.yaml").write_text(BROKEN)
    result = run("a.yaml", "--fix")
    assert Path("a.yaml").read_text() == FIXED
    assert result.exit_code == 0
    assert "fixed 3 values in 1 files\n" in result.stderr
    assert run("a.yaml", "--fix").stderr.startswith("fixed 0 values in 0 files\n")


def test_dry_fix() -> None:
    Path("a.yaml").write_text(BROKEN)
    result = run("a.yaml", "--fix", "--dry-run")
    assert Path("a.yaml").read_text() == BROKEN
    changed = [line for line in result.stdout.splitlines() if line.startswith(("+ ", "- "))]
    assert changed == [
        "-      NCCL_CUMEM_ENABLE: 1   # a number",
        "+      NCCL_CUMEM_ENABLE: '1'   # a number",
        '-      tensor-parallel-size: "8"',
        "+      tensor-parallel-size: 8",
        "-      max-cudagraph-capture-size: 8196   # nearly",
        "+      max-cudagraph-capture-size: 8192   # nearly",
    ]
    assert result.exit_code == 10


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"a: [", "a.yaml:1: the text ends inside", id="not YAML"),
        pytest.param(b"a: 1\nb: 2\n", "a.yaml:1: is not an srt-slurm recipe", id="no recipe"),
        pytest.param(b"name: a\nroles:\n\tagg: 1\n", "a tab in the indentation", id="tab"),
        pytest.param(b"name: a\nname: b\n", "duplicate key 'name'", id="duplicate key"),
        pytest.param(b"a: &x [*x]\n", "stands inside what it names", id="alias of itself"),
        pytest.param(bytes(range(256)), "", id="binary"),
        pytest.param(b"# x\n" * 3_000_000, "", id="12 MB"),
        pytest.param(b"", "", id="empty"),
    ],
)
def test_bad_input(content: bytes, message: str) -> None:
    Path("a.yaml").write_bytes(content)
    result = run("a.yaml")
    assert result.exit_code == 3
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert message in lines[0]


def test_bad_input_beside_good() -> None:
    write("b.yaml", ERROR)
    Path("a.yaml").write_text("name: a\nmodel: {\nresources: 1\nbackend: 2")
    result = run(".")
    assert result.exit_code == 3
    assert "TOP002" in result.stdout


def test_a_file_of_a_folder_that_is_no_yaml() -> None:
    write("b.yaml", CLEAN)
    Path("a.yaml").write_text("some: [thing\n")
    result = run(".")
    assert result.exit_code == 3
    assert "error: a.yaml:1: a '[' is opened here and not closed" in result.stderr


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (None, "error: no recipe found in here (give recipe files, or a folder that has them)"),
        ("x: 1\n", "error: no recipe found in here, only 1 other YAML file (give"),
        ("a: 1\n---\nb: 2\n", "error: no recipe found in here, only 1 other YAML file (give"),
    ],
)
def test_a_folder_without_recipes(other: str | None, message: str) -> None:
    Path("here").mkdir()
    if other is not None:
        Path("here/a.yaml").write_text(other)
    result = run("here")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert [line for line in result.stderr.splitlines() if line.startswith(message)]


def test_no_such_revision() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    result = run("nowhere:a.yaml")
    assert result.exit_code == 3
    assert "no file and no revision 'nowhere'" in result.stderr


def test_an_endless_grid() -> None:
    numbers = list(range(100))
    grid = {"sweep": {"a": numbers, "b": numbers, "c": numbers}}
    write("a.yaml", {"recipe": "plain", "set": grid})
    result = run("a.yaml")
    assert result.exit_code == 3
    assert "makes 1,000,000 jobs" in result.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"resources": None},
        {"resources": []},
        {"backend": "vllm"},
        {"backend/vllm_config": []},
        {"backend/vllm_config/decode": "x"},
        {"backend/vllm_config/decode/max-num-seqs": {"a": 1}},
        {"backend/vllm_config/decode/max-num-seqs": -1},
        {"backend/vllm_config/decode/max-num-seqs": 0},
        {"backend/vllm_config/decode/max-cudagraph-capture-size": 10**15},
        {"backend/vllm_config/decode/tensor-parallel-size": 0},
        {"backend/vllm_config/decode/compilation-config": "{"},
        {"backend/vllm_config/decode/compilation-config": '{"cudagraph_mode": "SOME"}'},
        {"benchmark": None},
        {"benchmark/isl": "long"},
        {"benchmark/concurrencies": "axb"},
        {"benchmark/concurrencies": []},
        {"model": None},
        {"model/container": 5},
        {"identity": 5},
        {"resources/gpus_per_node": 0},
        {"resources/gpu_type": 300},
        {"name": 5},
        {"sweep": {}},
    ],
    ids=str,
)
def test_faulty_recipes_are_findings(change: dict[str, Any]) -> None:
    write("a.yaml", {"recipe": "plain", "set": change})
    result = run("a.yaml")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in (0, 3, 10)


# --- explain ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["TOP001", "top001", "layout-beyond-gpus"])
def test_explain(name: str) -> None:
    result = CliRunner().invoke(main, ["explain", name])
    assert result.exit_code == 0
    assert result.stdout.startswith("# TOP001 layout-beyond-gpus\n\nerror: The parallel sizes")
    assert "## Why is this bad?" in result.stdout


def test_explain_lists_all() -> None:
    result = CliRunner().invoke(main, ["explain"])
    assert "| SUP002 | unused-suppression " in result.stdout


def test_explain_an_unknown_rule() -> None:
    result = CliRunner().invoke(main, ["explain", "TOP01"])
    assert result.exit_code == 2
    assert "did you mean 'TOP0" in result.stderr
