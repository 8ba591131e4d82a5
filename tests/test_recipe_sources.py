"""Where recipes come from: files, folders, globs, standard input and git revisions."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from generator.errors import InvalidInput
from generator.recipe.inputs import is_recipe, read_recipes
from generator.recipe.sources import (
    CollectedSources,
    collect_both_sides,
    collect_sources,
    is_range,
)

RECIPE = "name: {}\nmodel: {{path: x}}\nresources: {{gpu_type: gb300}}\n"


def recipe(name: str) -> str:
    return RECIPE.format(name)


def put(folder: Path, **texts: str) -> None:
    """Files by name, ``__`` for a folder and ``_yaml`` for the ending."""
    for name, text in texts.items():
        file = folder / (name.replace("__", "/").removesuffix("_yaml") + ".yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def names(collected: CollectedSources) -> list[str]:
    return [source.name for source in collected.sources]


def refusal(*arguments: str, folder: Path, stdin: bytes = b"") -> str:
    with pytest.raises(InvalidInput) as raised:
        collect_sources(arguments, folder=folder, stdin=io.BytesIO(stdin))
    return str(raised.value)


# --- disk and standard input ------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path, b=recipe("b"), deep__a=recipe("a"), deep__er__c=recipe("c"))
    put(tmp_path, deep__other="default_account: x\n")
    (tmp_path / "deep/d.YML").write_text(recipe("d"))
    (tmp_path / "deep/notes.txt").write_text("no recipe")
    put(tmp_path / ".hidden", h=recipe("h"))
    (tmp_path / "deep/.h.yaml").write_text(recipe("h"))
    return tmp_path


EVERY = ["b.yaml", "deep/a.yaml", "deep/d.YML", "deep/er/c.yaml", "deep/other.yaml"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["b.yaml"], ["b.yaml"]),
        (["deep"], ["deep/a.yaml", "deep/d.YML", "deep/er/c.yaml", "deep/other.yaml"]),
        (["./deep/er/"], ["deep/er/c.yaml"]),
        (["."], EVERY),
        (["deep/*.yaml"], ["deep/a.yaml", "deep/other.yaml"]),
        (["**/*.yaml"], ["b.yaml", "deep/a.yaml", "deep/er/c.yaml", "deep/other.yaml"]),
        (["d*p"], ["deep/a.yaml", "deep/d.YML", "deep/er/c.yaml", "deep/other.yaml"]),
        (["deep/er", "b.yaml", "."], ["deep/er/c.yaml", "b.yaml", *EVERY[1:3], EVERY[4]]),
        (["b.yaml", "./b.yaml", "deep/../b.yaml"], ["b.yaml"]),
        (["deep/notes.txt"], ["deep/notes.txt"]),
    ],
)
def test_files_folders_and_globs(folder: Path, arguments: list[str], expected: list[str]) -> None:
    assert names(collect_sources(arguments, folder=folder)) == expected


def test_relative_paths_pair_two_folders(folder: Path) -> None:
    put(folder, else__where__er__c=recipe("c2"))
    here = collect_sources(["deep"], folder=folder).sources
    there = collect_sources([str(folder / "else/where")], folder=folder).sources
    assert [each.relative_path for each in there] == ["er/c.yaml"]
    assert "er/c.yaml" in [each.relative_path for each in here]


def test_named_files_stay_named(folder: Path) -> None:
    collected = collect_sources([".", "b.yaml"], folder=folder)
    assert [each.name for each in collected.sources if each.is_named] == ["b.yaml"]


def test_file_with_a_colon_is_a_file(folder: Path) -> None:
    (folder / "a:b..c.yaml").write_text(recipe("x"))
    assert names(collect_sources(["a:b..c.yaml"], folder=folder)) == ["a:b..c.yaml"]
    assert not is_range("a:b..c.yaml", folder)


def test_standard_input(tmp_path: Path) -> None:
    text = "\ufeff" + recipe("ü")
    collected = collect_sources(["-", "-"], folder=tmp_path, stdin=io.BytesIO(text.encode()))
    (source,) = collected.sources
    assert (source.name, source.text, source.is_named) == ("<stdin>", recipe("ü"), True)


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("nope", "nope: no such file or folder (check the path; git wants REV:PATH)"),
        ("../nope.yaml", "../nope.yaml: no such file or folder"),
        ("deep/../nope", "deep/../nope: no such file or folder"),
        ("x*.yaml", "x*.yaml: no file has such a name (check the pattern; ** goes into folders)"),
        ("-", "<stdin>: nothing came in (pipe a recipe into it, or name a file)"),
        ("main:deep", "main:deep: git: not a git repository"),
        ("--exec=x:deep", "--exec=x:deep: '--exec=x' cannot be a revision"),
    ],
)
def test_arguments_that_stand_for_nothing(folder: Path, argument: str, problem: str) -> None:
    assert refusal(argument, folder=folder).startswith(problem)


def test_every_bad_argument_is_named(folder: Path) -> None:
    assert len(refusal("nope", "b.yaml", "no2", folder=folder).splitlines()) == 2


def test_what_is_no_text_is_told_beside_the_rest(folder: Path) -> None:
    (folder / "deep/image.yaml").write_bytes(b"\x89PNG\xff")
    (folder / "deep/big.yaml").write_bytes(b"# big\n" * (2**21))
    (folder / "deep/gone.yaml").symlink_to("nowhere")
    collected = collect_sources(["deep", "b.yaml"], folder=folder)
    assert [str(each) for each in collected.problems] == [
        "deep/big.yaml: is over 8 MiB (is this the right file?)",
        "deep/gone.yaml: no such file (check the path)",
        "deep/image.yaml:1: not UTF-8 text: byte 0x89 at offset 0 (save it as UTF-8)",
    ]
    assert names(collected)[-1] == "b.yaml"
    assert read_recipes(collected).problems == collected.problems


# --- git --------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    identity = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}  # fmt: skip
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **identity, **own})


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trunk of two commits, and a branch that left it after the first."""
    top = tmp_path_factory.mktemp("repository")
    git(top, "init", "-q", "-b", "trunk")
    put(top, same=recipe("same"), deep__a=recipe("a1"), deep__gone=recipe("gone"))
    put(top, deep__ü=recipe("ü"), notes="a: 1\n")
    put(top / ".github", ci=recipe("hidden"))
    (top / "deep/link.yaml").symlink_to("a.yaml")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    git(top, "branch", "side")
    put(top, deep__a=recipe("a2"), deep__new=recipe("new"))
    (top / "deep/gone.yaml").unlink()
    git(top, "add", "-A")
    git(top, "commit", "-qm", "two")
    git(top, "checkout", "-q", "side")
    put(top, side__s=recipe("s"))
    git(top, "add", "-A")
    git(top, "commit", "-qm", "three")
    put(top, deep__a=recipe("not committed"))
    return top


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("trunk:deep/a.yaml", ["trunk:deep/a.yaml"]),
        ("trunk:deep", ["trunk:deep/a.yaml", "trunk:deep/new.yaml", "trunk:deep/ü.yaml"]),
        ("trunk:deep/", ["trunk:deep/a.yaml", "trunk:deep/new.yaml", "trunk:deep/ü.yaml"]),
        ("side:side", ["side:side/s.yaml"]),
        ("trunk:.github", ["trunk:.github/ci.yaml"]),  # hidden, but asked for
        ("HEAD~1:./deep/gone.yaml", ["HEAD~1:deep/gone.yaml"]),
        ("side..trunk", ["trunk:deep/a.yaml", "trunk:deep/new.yaml"]),
        ("side...trunk", ["trunk:deep/a.yaml", "trunk:deep/new.yaml"]),
        ("trunk..side", ["side:deep/a.yaml", "side:deep/gone.yaml", "side:side/s.yaml"]),
        ("trunk...side", ["side:side/s.yaml"]),
        ("trunk...", ["HEAD:side/s.yaml"]),
        ("trunk..side:deep", ["side:deep/a.yaml", "side:deep/gone.yaml"]),
        ("side..side", []),
    ],
)
def test_git_revisions(repository: Path, argument: str, expected: list[str]) -> None:
    assert names(collect_sources([argument], folder=repository)) == expected


def test_git_texts_are_those_of_the_revision(repository: Path) -> None:
    collected = collect_sources(
        ["trunk:deep/a.yaml", "side:deep", "deep/a.yaml"], folder=repository
    )
    texts = {each.name: each.text for each in collected.sources}
    assert texts["trunk:deep/a.yaml"] == recipe("a2")
    assert texts["side:deep/a.yaml"] == recipe("a1")
    assert texts["deep/a.yaml"] == recipe("not committed")
    named = [each.name for each in collected.sources if each.is_named]
    assert named == ["trunk:deep/a.yaml", "deep/a.yaml"]


def test_paths_begin_at_the_top_or_here(repository: Path) -> None:
    inside = repository / "deep"
    for argument in ("side:deep/a.yaml", "side:./a.yaml", "side:../deep/a.yaml"):
        assert names(collect_sources([argument], folder=inside)) == ["side:deep/a.yaml"]


def test_same_file_of_two_names_of_one_commit_is_read_once(repository: Path) -> None:
    collected = collect_sources(["side:deep", "HEAD:deep/a.yaml"], folder=repository)
    assert (
        names(collected).count("side:deep/a.yaml")
        == 1
        == len([each for each in collected.sources if each.is_named])
    )


def test_both_sides_of_a_range(repository: Path) -> None:
    before, after = collect_both_sides("side...trunk", folder=repository)
    assert [each.relative_path for each in before.sources] == ["deep/a.yaml", "deep/gone.yaml"]
    assert [each.relative_path for each in after.sources] == ["deep/a.yaml", "deep/new.yaml"]
    before, after = collect_both_sides("trunk..side:side", folder=repository)
    assert (names(before), [each.relative_path for each in after.sources]) == ([], ["s.yaml"])


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("nope:deep", "nope:deep: no file and no revision 'nope' in this repository"),
        ("trunk:nope", "trunk:nope: revision 'trunk' has no YAML file there"),
        ("trunk:../..", "trunk:../..: '../..' leads out of the repository"),
        ("trunk..nope", "trunk..nope: no file and no revision 'nope'"),
        (":deep", ":deep: '' cannot be a revision"),
        ("a b:deep", "a b:deep: 'a b' cannot be a revision"),
    ],
)  # fmt: skip
def test_git_refusals(repository: Path, argument: str, problem: str) -> None:
    assert refusal(argument, folder=repository).startswith(problem)


def test_no_common_commit(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "alone")
    git(repository, "commit", "-qm", "alone")
    git(repository, "checkout", "-qf", "side")
    message = "trunk...alone: 'alone' and 'trunk' have no common commit here"
    assert refusal("trunk...alone", folder=repository).startswith(message)


def test_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    message = "trunk:deep: git is not installed, and revisions are read through it (install git)"
    assert refusal("trunk:deep", folder=repository) == message


def test_range_is_asked_for() -> None:
    assert is_range("a..b")
    assert is_range("origin/main...HEAD:recipes")
    assert not is_range("../recipes")
    assert not is_range("a/../b")
    assert not is_range("..")
    with pytest.raises(InvalidInput, match="no range of revisions"):
        collect_both_sides("recipes")


# --- recipes among them -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("name model resources backend benchmark", True),
        ("schema name model resources engine roles", True),
        ("base override_a", True),
        ("base zip_override_a schema", True),
        ("name backend", True),  # partial
        ("model benchmark", True),
        ("base", False),
        ("name model", False),
        ("default_account model_paths containers", False),  # the cluster file
        ("version services", False),
        ("apiVersion kind metadata spec", False),
        ("apiVersion kind resources name", False),
        ("pdrecipe name model benchmark", False),  # a spec
    ],
)
def test_is_recipe(keys: str, *, expected: bool) -> None:
    assert is_recipe(dict.fromkeys(keys.split())) is expected


def test_only_what_was_named_has_to_be_a_recipe(tmp_path: Path) -> None:
    put(tmp_path, a=recipe("a"), other="x: 1\n", listed="- 1\n")
    put(tmp_path, manifests="kind: A\n---\nkind: B\n")
    put(tmp_path, template="{{ if x }}\na: b\n", broken=recipe("b") + "  oops: [\n")
    found = read_recipes(collect_sources(["."], folder=tmp_path))
    assert [each.source.name for each in found.recipes] == ["a.yaml"]
    assert found.skipped == ("listed.yaml", "manifests.yaml", "other.yaml")
    assert {each.source for each in found.problems} == {"broken.yaml", "template.yaml"}
    named = ["other.yaml", "listed.yaml", "template.yaml"]
    found = read_recipes(collect_sources(named, folder=tmp_path))
    assert (found.recipes, found.skipped) == ((), ())
    assert [str(each).partition(" (")[0] for each in found.problems][:2] == [
        "other.yaml:1: is not an srt-slurm recipe",
        "listed.yaml:1: is not an srt-slurm recipe: a list",
    ]
    assert {each.source for each in found.problems} == set(named)


def test_specs_are_sent_to_generate(repository_specs: Path) -> None:
    (spec, *_) = sorted(repository_specs.glob("*.yaml"))
    (problem,) = read_recipes(collect_sources([str(spec)])).problems
    assert problem.hint == "it is a spec: render it with pdrecipe generate"


@pytest.fixture
def repository_specs() -> Path:
    return Path(__file__).resolve().parent.parent / "recipes/specs"


def test_all_real_recipes_are_found(shared: Path) -> None:
    found = read_recipes(collect_sources([str(shared / "recipes")]))
    assert (len(found.recipes), found.skipped, found.problems) == (65, (), ())
