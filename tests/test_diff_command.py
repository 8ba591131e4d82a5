"""pdrecipe diff: what a reviewer reads, from files, folders, revisions, and as git's own driver."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import Result
from syrupy.assertion import SnapshotAssertion

from generator.recipe_diff.markdown import MAX_MARKDOWN_BYTES, diff_markdown
from generator.recipe_diff.text import diff_text
from generator.validation import schema
from tests.small_specs import MODEL, run

REPOSITORY = Path(__file__).resolve().parent.parent
RECIPES = REPOSITORY / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg"
BIG = "4xtp2dep4-1xtp4dep4-cc2560.yaml"
SPEC = "qwen3.8-2.4t-gb300-8k1k.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the rendered recipes as ``old`` and ``new``, and their model as ``model``."""
    for name in ("old", "new"):
        shutil.copytree(RECIPES / "v2", tmp_path / name)
    shutil.copytree(REPOSITORY / MODEL, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(path: Path | str, *edits: tuple[str, str]) -> None:
    text = Path(path).read_text("utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    Path(path).write_text(text, encoding="utf-8")


def printed(*arguments: str, exit_code: int = 0) -> str:
    result = run("diff", *arguments)
    assert result.exit_code == exit_code, result.stderr
    assert result.stderr == ""
    return result.stdout


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(*arguments, "--format", "json"))
    jsonschema.validate(found, schema("diff"))
    return found


def errors(*arguments: str, exit_code: int = 3) -> list[str]:
    result: Result = run("diff", *arguments)
    assert result.exit_code == exit_code, result.stdout
    return result.stderr.splitlines()


# --- what a reviewer reads ----------------------------------------------------------------------


def test_one_number_of_the_spec(folder: Path, snapshot: SnapshotAssertion) -> None:
    """One screen says what changed, in how many recipes, and what it does to capacity."""
    shutil.copytree(REPOSITORY / "recipes/models", folder / "models")
    (folder / "specs").mkdir()
    shutil.copy(REPOSITORY / "recipes/specs" / SPEC, folder / "specs")
    edit(folder / "specs" / SPEC, ("headroom_sequences: 16", "headroom_sequences: 32"))
    assert run("generate", f"specs/{SPEC}", "--out", "new").exit_code == 0
    text = printed("old", "new", "--model", "model")
    lines = text.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    assert text == snapshot
    assert printed("old", "new", "--model", "model", "--format", "markdown") == snapshot


def test_one_recipe(folder: Path, snapshot: SnapshotAssertion) -> None:
    edit(
        folder / "new" / BIG,
        ("max-num-seqs: 656", "max-num-seqs: 720"),
        ("name: qwen38", "name: our-qwen38"),
        ("DYN_LOG: error", "DYN_LOG: info"),
        ("      kv-cache-dtype: fp8\n", ""),
        ("gpu_type: gb300", "gpu_type: gb300\n  het_jobs: true"),
    )
    arguments = (f"old/{BIG}", f"new/{BIG}", "--model", "model")
    assert printed(*arguments) == snapshot
    assert printed(*arguments, "--format", "markdown") == snapshot


def test_added_removed_renamed_and_siblings(folder: Path, snapshot: SnapshotAssertion) -> None:
    new = folder / "new"
    for path in sorted(new.glob("*.yaml"))[:6]:
        edit(path, ("max-model-len: 10240", "max-model-len: 12288"))
    (new / BIG).rename(new / "renamed.yaml")
    (new / "2xtp2dep4-1xtp4dep4-mtp-cc256.yaml").unlink()
    shutil.copy(RECIPES / "v2/probe/probe-tep8-mtp-cc4.yaml", new / "another.yaml")
    assert printed("old", "new") == snapshot
    summary = document("old", "new")["summary"]
    assert {key: summary[key] for key in ("added", "removed", "renamed", "changed")} == {
        "added": 1,
        "removed": 1,
        "renamed": 1,
        "changed": 5,
    }


@pytest.mark.usefixtures("folder")
def test_siblings_that_did_not_get_the_change() -> None:
    names = [
        f"{name}.yaml"
        for name in ("1xtp2dep4-1xtp4dep4-mtp-cc128", "2xtp2dep4-1xtp4dep4-mtp-cc256")
    ]
    edit(f"new/{names[0]}", ("max-num-seqs: 80", "max-num-seqs: 96"))
    (group,) = document("old", "new")["groups"]
    assert (group["before"], group["after"]) == (80, 96)
    assert group["recipes"] == names[:1]
    assert group["siblings"] == ["1xtp2dep4-1xtp8-mtp-cc32-64.yaml", names[1]]
    assert "! 2 siblings with 80 still" in printed("old", "new", "--exit-code", exit_code=10)


@pytest.mark.usefixtures("folder")
def test_no_changes() -> None:
    assert printed("old", "new") == (
        "No changes. 42 recipes of old and new were compared by meaning, 2,372 values of them;"
        " spelling,\n  order, comments and defaults written out make no difference.\n"
    )
    assert printed("old", "new", "--exit-code").startswith("No changes.")
    assert printed("old", "new", "--format", "markdown").splitlines()[2].startswith("No changes.")


def test_layouts_differ_only_in_what_v2_cannot_say(snapshot: SnapshotAssertion) -> None:
    arguments = (str(RECIPES / "v1"), str(RECIPES / "v2"), "--exit-code")
    text = printed(*arguments).replace(str(RECIPES), "")
    assert text.split("\n\n")[1:] == snapshot
    assert document(*arguments)["summary"]["different"] is False


@pytest.mark.usefixtures("folder")
def test_exit_code() -> None:
    edit(f"new/{BIG}", ("max-num-seqs: 656", "max-num-seqs: 720"))
    assert printed("old", "new")
    assert printed("old", "new", "--exit-code", exit_code=10)


# --- what follows ------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_figures_of_both_sides() -> None:
    edit(
        f"new/{BIG}",
        ("max-num-seqs: 656", "max-num-seqs: 720"),
        ("max-num-batched-tokens: 672", "max-num-batched-tokens: 720"),
        ("nodes: 8 ", "nodes: 9 "),
    )
    (recipe,) = document("old", "new", "--model", "model")["recipes"]
    (consequence,) = recipe["consequences"]
    assert consequence["nodes"] == {"before": 12, "after": 13}
    assert consequence["gpus"] == {"before": 48, "after": 48}
    before, after = (consequence["engines"][1][side] for side in ("before", "after"))
    assert before["basis"] == "computed"  # from a measured start-up
    assert before["requests_per_endpoint"] == 2867.5
    assert (before["slots"], after["slots"]) == (2624, 2880)
    assert (before["concurrency"], before["block_tokens"], before["graphs"]) == (2560, 2112, 60)
    assert after["basis"] == "assumed"
    # The other side's measurement: the estimate does not tell these two start-ups apart.
    assert after["kv_cache_bytes_per_rank"] == before["kv_cache_bytes_per_rank"]


@pytest.mark.usefixtures("folder")
def test_findings_come_and_go() -> None:
    edit(f"new/{BIG}", ("concurrencies: '2560'", "concurrencies: '4096'"))
    found = document("old", "new", "--model", "model")
    assert found["summary"]["findings"] == {"appeared": 2, "vanished": 0}
    (recipe,) = found["recipes"]
    rules = {finding["rule"] for finding in recipe["findings"]["appeared"]}
    assert rules == {"CON001", "MEM007"}
    back = document("new", "old", "--model", "model")
    assert back["summary"]["findings"] == {"appeared": 0, "vanished": 2}


@pytest.mark.usefixtures("folder")
def test_an_unknown_model_is_said() -> None:
    edit(f"old/{BIG}", ("Inferact/Qwen3.8-2.4T-A95B-NVFP4", "nobody/Knows"))
    edit(
        f"new/{BIG}",
        ("Inferact/Qwen3.8-2.4T-A95B-NVFP4", "nobody/Knows"),
        ("max-num-seqs: 656", "max-num-seqs: 720"),
    )
    assert "no capacity of 1 recipe whose model is not known" in printed(f"old/{BIG}", f"new/{BIG}")


@pytest.mark.usefixtures("folder")
def test_a_side_that_cannot_be_computed_says_why() -> None:
    edit(f"new/{BIG}", ("gpu_type: gb300", "gpu_type: gb9"))
    text = printed(f"old/{BIG}", f"new/{BIG}", "--model", "model")
    assert "no figures of decode: GPU 'gb9' is not known (1 recipe)" in text
    assert "as before" not in text


@pytest.mark.usefixtures("folder")
def test_only_what_was_computed_is_as_before() -> None:
    text = Path(f"new/{BIG}").read_text("utf-8")
    head, found, tail = text.partition("  decode:")
    assert found
    tail = tail.replace("tensor-parallel-size: 2", "tensor-parallel-size: 7")
    tail = tail.replace("tensor-parallel-size: 4", "tensor-parallel-size: 7")
    Path(f"new/{BIG}").write_text(head + found + tail, encoding="utf-8")
    text = printed(f"old/{BIG}", f"new/{BIG}", "--model", "model")
    assert "no figures of decode: " in text
    assert "Capacity of prefill: as before, 1 engine computed for both sides." in text


# --- sweeps and overrides ------------------------------------------------------------------------


def test_jobs_of_a_file_are_compared_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        shutil.copy(REPOSITORY / "tests/data/recipes/override.yaml", name)
    edit(
        "b.yaml",
        ("max-num-seqs: [32, 64]", "max-num-seqs: [32, 128]"),
        ("    concurrency: [8, 16]\n", "    concurrency: [8, 32]\n"),
        ("    isl: 1024", "    isl: 2048"),
    )
    assert printed("a.yaml", "b.yaml") == snapshot
    (recipe,) = document("a.yaml", "b.yaml")["recipes"]
    assert recipe["jobs"] == {
        "before": 5,
        "after": 5,
        "compared": 4,
        "changed": 4,
        "added": ["grid_concurrency32_labela_sizes[1, 2]"],
        "removed": ["grid_concurrency16_labela_sizes[1, 2]"],
    }
    by_path = {change["path"]: change for change in recipe["changes"]}
    assert by_path["benchmark.isl"]["jobs"] == 4
    assert by_path["roles.agg.args.max-num-seqs"]["jobs"] == 1


def test_a_plain_file_against_an_override_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(REPOSITORY / "tests/data/recipes/override.yaml", "jobs.yaml")
    base = yaml.safe_load(Path("jobs.yaml").read_text("utf-8"))["base"]
    Path("plain.yaml").write_text(yaml.safe_dump(base), encoding="utf-8")
    text = " ".join(printed("plain.yaml", "jobs.yaml").split())
    assert "(no job in common; 5 jobs added: " in text
    assert "; 1 job removed: base)" in text
    assert "0 of 0" not in text
    assert "hidden" not in text
    markdown = printed("plain.yaml", "jobs.yaml", "--format", "markdown")
    assert "Jobs that only one side has:\n\n- jobs.yaml: no job in common; 5 jobs" in markdown


# --- quotes --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_quotes_are_no_difference() -> None:
    edit(f"new/{BIG}", ("max-num-seqs: 656", 'max-num-seqs: "656"'))
    assert printed("old", "new", "--exit-code").startswith("No changes.")


@pytest.mark.usefixtures("folder")
def test_quotes_that_break_a_launch_are_shown() -> None:
    edit(f"new/{BIG}", ("data-parallel-size: 4", 'data-parallel-size: "4"'))
    arguments = (f"old/{BIG}", f"new/{BIG}", "--model", "model", "--exit-code")
    text = printed(*arguments, exit_code=10)
    assert 'data-parallel-size  4 -> "4" ' in text
    assert "TOP006" in text
    markdown = printed(*arguments, "--format", "markdown", exit_code=10)
    assert '`4 -> "4"`' in markdown
    assert '| `4` | `"4"` |' in markdown


# --- text and Markdown are rendered from the document --------------------------------------------


@pytest.mark.usefixtures("folder")
def test_views_need_nothing_but_the_document() -> None:
    edit(f"new/{BIG}", ("max-num-seqs: 656", "max-num-seqs: 720"))
    arguments = ("old", "new", "--model", "model")
    found = document(*arguments)
    assert "\n".join([*diff_text(found), ""]) == printed(*arguments)
    assert f"{diff_markdown(found)}\n" == printed(*arguments, "--format", "markdown")


def test_markdown_fits_a_comment_and_says_what_it_left_out() -> None:
    path = "roles.decode.args.a-flag"
    change = {
        "path": path,
        "action": "changed",
        "before": "x" * 200,
        "after": "|`" * 100,
        "default": None,
        "effect": "invalidates-results",
    }
    recipe = {
        "path": "r.yaml",
        "status": "changed",
        "before_path": "r.yaml",
        "after_path": "r.yaml",
        "jobs": {
            "before": 1,
            "after": 1,
            "compared": 1,
            "changed": 1,
            "added": [],
            "removed": [],
        },
        "effect": "invalidates-results",
        "unchanged_values": 1,
        "changes": [{**change, "before_line": 1, "after_line": 1, "jobs": 1}] * 10,
        "inexpressible": [],
        "consequences": [],
        "findings": {"appeared": [], "vanished": []},
    }
    names = [f"folder/{index:04}.yaml" for index in range(400)]
    found = {
        "version": 1,
        "before": {"name": "a", "recipes": 400, "skipped": []},
        "after": {"name": "b", "recipes": 400, "skipped": []},
        "models": [],
        "summary": {
            "different": True,
            "compared": 400,
            "unchanged": 0,
            "changed": 400,
            "added": 0,
            "removed": 0,
            "renamed": 0,
            "values_compared": 4000,
            "effect": "invalidates-results",
            "findings": {"appeared": 0, "vanished": 0},
        },
        "groups": [{**change, "recipes": names, "siblings": names}] * 400,
        "recipes": [{**recipe, "path": name} for name in names],
        "problems": [{"message": "x" * 100, "source": "a", "line": None}] * 400,
    }
    jsonschema.validate(found, schema("diff"))
    text = diff_markdown(found)
    assert len(text.encode()) < MAX_MARKDOWN_BYTES
    assert "recipes left out to keep this short" in text.splitlines()[-1]
    tables = [line for line in text.splitlines() if line.startswith("| ~ |")]
    assert all(line.replace("\\|", "").count("|") in (6, 7) for line in tables)
    assert max(map(len, diff_text(found))) <= 130


@pytest.mark.usefixtures("folder")
def test_values_that_json_lacks_are_text() -> None:
    edit(f"new/{BIG}", ("max-num-seqs: 656", "max-num-seqs: 656\n      a: .inf\n      b: .nan"))
    text = printed("old", "new", "--format", "json")
    found = json.loads(text, parse_constant=pytest.fail)
    assert [group["after"] for group in found["groups"]] == [".inf", "nan"]


# --- revisions -------------------------------------------------------------------------------


def git(folder: Path, *arguments: str, **environment: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        [*command, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **environment},
    )
    return done.stdout


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of recipes in two commits; one of eight changes, in ``v2`` only."""
    shutil.copytree(RECIPES, tmp_path / "recipes")
    (tmp_path / "notes.yaml").write_text("a: 1\n", encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    edit(tmp_path / "recipes/v2" / BIG, ("max-num-seqs: 656", "max-num-seqs: 720"))
    (tmp_path / "notes.yaml").write_text("a: 2\n", encoding="utf-8")
    git(tmp_path, "commit", "-qam", "two")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("arguments", "compared", "path"),
    [
        (["HEAD~1..HEAD"], 8, f"recipes/v2/{BIG}"),
        (["HEAD~1...main:recipes/v2"], 8, BIG),
        (["HEAD~1:recipes/v2", "recipes/v2"], 42, BIG),
        ([f"HEAD~1:recipes/v2/{BIG}", f"main:recipes/v2/{BIG}"], 1, BIG),
        (["HEAD~1:./", "."], 84, f"recipes/v2/{BIG}"),
    ],
)
def test_revisions(arguments: list[str], compared: int, path: str) -> None:
    found = document(*arguments)
    assert found["summary"]["compared"] == compared
    assert [recipe["path"] for recipe in found["recipes"]] == [path]
    (group,) = found["groups"]
    assert (group["path"], group["before"], group["after"]) == (
        "roles.decode.args.max-num-seqs",
        656,
        720,
    )


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("argument", ["HEAD..HEAD", "HEAD..HEAD:recipes/v1"])
def test_nothing_between_two_revisions(argument: str) -> None:
    assert printed(argument, "--exit-code").startswith("No changes.")


def driver(folder: Path, *arguments: str) -> str:
    """What ``git diff`` prints with the command as its driver for YAML files."""
    call = [sys.executable, "-c", "from generator.cli import main; main()", "diff"]
    (folder / ".gitattributes").write_text("*.yaml diff=pdrecipe\n", encoding="utf-8")
    git(folder, "config", "diff.pdrecipe.command", shlex.join(call))
    return git(folder, "diff", *arguments, PYTHONPATH=str(REPOSITORY))


def test_git_diff_driver(history: Path) -> None:
    text = driver(history, "HEAD~1", "HEAD")
    assert f"~ recipes/v2/{BIG}" in text
    assert "~ roles.decode.args.max-num-seqs  656 -> 720" in text
    assert "-a: 1\n+a: 2\n" in text  # no recipe: line by line
    assert "\033[" not in text


def test_git_diff_driver_on_new_renamed_and_binary_files(history: Path) -> None:
    v2 = history / "recipes/v2"
    shutil.copy(v2 / BIG, v2 / "fresh.yaml")
    (v2 / "1xtp8-1xtp8-mtp-cc1-4.yaml").rename(v2 / "moved.yaml")
    edit(v2 / "moved.yaml", ("max-num-seqs: 20", "max-num-seqs: 24"))
    (history / "notes.yaml").write_bytes(b"\xff\xfe\x00")
    git(history, "add", "-A")
    text = driver(history, "--cached", "-M")
    assert "+ recipes/v2/fresh.yaml" in text
    assert "~ roles.decode.args.max-num-seqs  20 -> 24" in text
    assert "Binary files a/notes.yaml and b/notes.yaml differ" in text


def test_git_diff_driver_on_an_unmerged_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIFF_PATH_TOTAL", "1")
    assert printed("recipes/a.yaml") == "* Unmerged path recipes/a.yaml\n"


def test_pre_commit_hooks(history: Path) -> None:
    hooks = {
        hook["id"]: hook
        for hook in yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8"))
    }
    assert set(hooks) == {"pdrecipe-check", "pdrecipe-diff"}
    _, *check = shlex.split(hooks["pdrecipe-check"]["entry"])
    assert run(*check, f"recipes/v2/{BIG}").exit_code == 0
    edit(history / "recipes/v1" / BIG, ("max-num-seqs: 656", "max-num-seqs: 700"))
    _, command, *arguments = shlex.split(hooks["pdrecipe-diff"]["entry"])
    assert command == "diff"
    assert "656 -> 700" in printed(*arguments)


# --- wrong calls and bad input -------------------------------------------------------------------


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recipes"], "a diff has two sides, not 1"),
        (["a", "b", "c"], "a diff has two sides, not 3"),
        (["nope..HEAD"], "nope..HEAD: no file and no revision 'nope' in this repository"),
        (["nope:recipes", "recipes"], "nope:recipes: no file and no revision 'nope'"),
        (["HEAD:nope", "recipes"], "HEAD:nope: revision 'HEAD' has no YAML file there"),
        (["nope.yaml", "recipes"], "nope.yaml: no such file or folder"),
        (["notes.yaml", "notes.yaml"], "notes.yaml:1: is not an srt-slurm recipe"),
        (["empty", "empty"], "no recipe in empty or empty"),
    ],
)
def test_wrong_calls(arguments: list[str], message: str) -> None:
    Path("empty").mkdir()
    lines = errors(*arguments)
    assert len(lines) == 1
    assert message in lines[0]


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [\n", "the text ends inside a '['"),
        (b"\tname: a\n", "a tab in the indentation"),
        (b"name: a\nname: b\nresources: {}\nbackend: {}\n", "name"),
        (b"\xff\xfe\x00\x01", "not UTF-8 text"),
        (b"name: a\x00\n", "control character"),
        (b"a: &a [*a]\n", "a"),
        (b"# " + b"x" * 10 * 2**20, "is over 8 MiB"),
        (b"name: a\nresources: {}\nbackend: {}\nsweep: {a: 1}\n", "must be a list of values"),
        (b"- 1\n", "is not an srt-slurm recipe: a list"),
        (b"pdrecipe: 1\nname: a\n", "it is a spec"),
    ],
    ids=[
        "no YAML",
        "tabs",
        "duplicate keys",
        "binary",
        "control character",
        "recursion",
        "10 MB",
        "no grid",
        "a list",
        "a spec",
    ],
)
def test_bad_input_is_one_clear_line(content: bytes, message: str) -> None:
    Path("bad.yaml").write_bytes(content)
    started = time.monotonic()
    (line,) = errors("bad.yaml", f"recipes/v2/{BIG}")
    assert line.startswith("error: bad.yaml")
    assert message in line
    assert time.monotonic() - started < 5


def test_a_bad_file_among_others_is_no_removed_recipe(history: Path) -> None:
    for folder in ("old", "new"):
        shutil.copytree(history / "recipes/v2", folder)
    Path(f"new/{BIG}").write_text("name: a\nresources: [\n", encoding="utf-8")
    edit("new/1xtp8-1xtp8-mtp-cc1-4.yaml", ("max-num-seqs: 20", "max-num-seqs: 24"))
    result = run("diff", "old", "new", "--format", "json")
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1
    found = json.loads(result.stdout)
    assert (found["summary"]["removed"], found["summary"]["changed"]) == (0, 1)
    assert found["problems"][0]["source"] == f"new/{BIG}"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("content", ["<<<<<<< ours\n", "just: text\n", "- 1\n", ""])
def test_what_stopped_being_a_recipe_is_no_removed_one(content: str) -> None:
    Path(f"new/{BIG}").write_text(content, encoding="utf-8")
    result = run("diff", "old", "new")
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: new/{BIG}")
    assert "removed" not in result.stdout


@pytest.mark.parametrize("option", [["--format", "json"], ["--format=json"]])
def test_errors_of_a_json_answer_are_json(option: list[str]) -> None:
    result = run("diff", "nope.yaml", "nope.yaml", *option)
    assert (result.exit_code, result.stdout) == (3, "")
    (problem,) = json.loads(result.stderr)["problems"]
    assert problem["source"] == "nope.yaml"


def test_shipped_recipes(shared: Path) -> None:
    recipes = str(shared / "recipes")
    assert printed(recipes, recipes, "--exit-code").startswith("No changes. 65 recipes")
    vllm = shared / "recipes/v1/multi-node/MiniMax-M3/GB300/vllm"
    found = document(str(vllm / "1k1k"), str(vllm / "8k1k"))
    assert found["summary"]["renamed"] == 6
