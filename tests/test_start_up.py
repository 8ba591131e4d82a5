"""What generate and capacity say of recipes whose engines have more sequences than blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_specs import Edit, edited, run, spec_folder

GENERATE = ["generate", "spec.yaml", "--out", "out"]
STATES = ("kv-cache-dtype: fp8", "kv-cache-dtype: fp8, mamba-ssm-cache-dtype: bfloat16")
MANY = ("headroom_sequences: 16", "headroom_sequences: 8000")


def given(kv_cache_gib: int) -> Edit:
    """The KV cache of both roles in bytes."""
    size = kv_cache_gib * 2**30
    return "language-model-only: true", f"language-model-only: true, kv-cache-memory-bytes: {size}"


@pytest.fixture
def folder(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return spec_folder(tmp_path, repository)


def rewrite(*edits: Edit) -> None:
    Path("spec.yaml").write_text(edited(*edits), encoding="utf-8")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("more", [[], ["--check"]], ids=["write", "check"])
def test_a_given_kv_cache_refuses_more_sequences_than_its_blocks(more: list[str]) -> None:
    """83 GiB of TP8 without drafted tokens are the 7166 blocks of 23 pages of 528 KiB."""
    rewrite(MANY, STATES, given(83))
    result = run(*GENERATE, *more)
    assert result.exit_code == 3
    assert result.stderr == (
        "error: spec.yaml:16: sizing.decode.max-num-seqs: vLLM does not start with max-num-seqs"
        " 8004, above the 7166 blocks there are (KV cache measured) (set max-num-seqs to at most"
        " 7166)\n"
    )
    assert not Path("out").exists()
    text = " ".join(run("capacity", "spec.yaml").stdout.split())
    assert "D TEP8 s8004: vLLM does not start with max-num-seqs 8004, above the 7166 blocks" in text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("headroom", "exit_code"), [(7162, 0), (7163, 3)])
def test_as_many_sequences_as_blocks_start(headroom: int, exit_code: int) -> None:
    rewrite(("headroom_sequences: 16", f"headroom_sequences: {headroom}"), STATES, given(83))
    result = run(*GENERATE)
    assert result.exit_code == exit_code
    assert ("start with" in result.stderr) is bool(exit_code)


@pytest.mark.usefixtures("folder")
def test_an_assumed_kv_cache_is_a_doubt_in_both_commands() -> None:
    rewrite(MANY, STATES)
    result = run(*GENERATE)
    assert result.exit_code == 0
    assert Path("out/a.yaml").is_file()
    (warning,) = (line for line in result.stderr.splitlines() if "start" in line)
    start, _, message = warning.partition("decode: ")
    assert start == "warning: a: "
    assert message == (
        "vLLM may not start with max-num-seqs 8004, above the 5696 blocks there are"
        " (KV cache assumed +-33.34 GiB)"
    )
    assert f"D TEP8 s8004: {message}" in " ".join(run("capacity", "spec.yaml").stdout.split())


@pytest.mark.usefixtures("folder")
def test_engines_without_full_graphs_start_with_any_number() -> None:
    pieces = (
        "no-enable-prefix-caching: true",
        "no-enable-prefix-caching: true, compilation-config: {cudagraph_mode: PIECEWISE}",
    )
    rewrite(MANY, STATES, pieces, given(83))
    assert "start with" not in run(*GENERATE).stderr


def test_probes_are_checked_too(folder: Path) -> None:
    rewrite(STATES, given(83))
    probe = "probe: {engines: [{file: p, layout: TEP8, concurrency: 8000}]}\n"
    spec = folder / "spec.yaml"
    spec.write_text(spec.read_text("utf-8") + probe, "utf-8")
    result = run(*GENERATE)
    assert result.exit_code == 3
    assert "spec.yaml:16: sizing.decode.max-num-seqs: vLLM does not start" in result.stderr
    assert "max-num-seqs 8016, above the 7166 blocks there are" in result.stderr


def test_a_published_spec_is_warned_of(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    result = run("generate", "recipes/specs/qwen3.5-397b-gb200-8k1k.yaml", "--check")
    assert result.exit_code == 0
    assert (
        "warning: 4xdep2-1xdep8 and 19 more: prefill: vLLM may not start with max-num-seqs 1024,"
        " above the 932 blocks there are (KV cache assumed +-33.88 GiB)\n"
    ) in result.stderr
