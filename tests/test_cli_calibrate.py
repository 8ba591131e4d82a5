"""pdrecipe calibrate as people run it: the text, the document, the profile file, bad input."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from generator.facts import read_profiles
from generator.validation import schema
from tests.composed_logs import LOGS, RUN_TERMS, budget_line, kv_cache_line, tagged, weights_line
from tests.small_specs import MODEL, run

SPEC = "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
QWEN38 = ["--model", MODEL, "--gpu", "gb300"]
DTYPES = ["--kv-cache-dtype", "fp8", "--mamba-ssm-cache-dtype", "bfloat16"]
DATA = "tests/data/logs"
NOW = 1786665600  # 2026-08-14, the day that the logs say


def qwen35(name: str, mtp: int) -> list[str]:
    return [
        *("--model", f"tests/data/hf_configs/{name}", "--gpu", "h100", "--layout", "TP1"),
        *("--mtp", str(mtp), "--kv-cache-dtype", "fp8", "--mamba-ssm-cache-dtype", "float32"),
        *("--enable-prefix-caching", "--max-num-batched-tokens", "8192"),
    ]


# What a person types for each log, and nothing that the log itself tells.
COMMANDS: dict[str, list[str]] = {
    "run7_four_ranks": [*QWEN38, "--isl", "8192", "--osl", "1024", "--concurrency", "2560"],
    "run7_four_ranks by spec": ["--spec", SPEC],
    "run6_older_budget": [
        *(*QWEN38, "--mamba-ssm-cache-dtype", "bfloat16"),
        *("--max-num-seqs", "272", "--max-num-batched-tokens", "1104"),
        *("--isl", "8192", "--osl", "4096", "--concurrency", "1400"),
    ],
    "run1_ends_early": [
        *(*QWEN38, "--layout", "TEP8", "--mamba-ssm-cache-dtype", "bfloat16"),
        *("--max-num-seqs", "20", "--max-num-batched-tokens", "96"),
    ],
    "t03_old_style": qwen35("Qwen--Qwen3.5-35B-A3B", 2),
    "t17_refused": qwen35("Qwen--Qwen3.5-27B", 3),
    "t03_old_style by itself": [],
}


def arguments(case: str) -> list[str]:
    return ["calibrate", f"{DATA}/{case.partition(' ')[0]}.log", *COMMANDS[case]]


@pytest.fixture(autouse=True)
def _in_the_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)


@pytest.mark.parametrize("case", COMMANDS)
def test_as_people_see_it(case: str, snapshot: SnapshotAssertion) -> None:
    result = run(*arguments(case))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == snapshot


@pytest.mark.parametrize("case", COMMANDS)
def test_the_document_is_valid_and_says_the_same(case: str) -> None:
    result = run(*arguments(case), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    Draft202012Validator(schema("calibration")).validate(document)
    (log,) = document["logs"]
    text = run(*arguments(case)).stdout
    for finding in log["findings"]:
        assert " ".join(finding["message"].split()) in " ".join(text.split())


@pytest.mark.parametrize("more", [[], ["--spec", SPEC]], ids=["by itself", "by spec"])
@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda log: log.stem)
def test_no_line_is_wider_than_the_page(log: Path, more: list[str]) -> None:
    result = run("calibrate", f"{DATA}/{log.name}", *more)
    assert (result.exit_code == 0) is (result.stdout != "")
    assert max(map(len, result.stdout.splitlines()), default=0) <= 100


@pytest.mark.parametrize("case", COMMANDS)
def test_no_line_of_a_described_engine_is_wider_than_the_page(case: str) -> None:
    assert max(map(len, run(*arguments(case)).stdout.splitlines())) <= 100


def test_the_account_of_an_engine_with_a_long_name(tmp_path: Path) -> None:
    """Run 6 under the deployment that has its engine; the log of the data is of another release."""
    text = (LOGS / "run6_older_budget.log").read_text("utf-8")
    log = tmp_path / "run6.log"
    log.write_text(text.replace("0.26.0", "0.26.1rc1.dev1177+ga9a17e709"), "utf-8")
    engine = "3xtp2dep4-1xtp4dep4-mtp-cc1024/decode"
    result = run("calibrate", str(log), "--spec", SPEC, "--engine", engine)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    (row,) = (line for line in result.stdout.splitlines() if line.startswith("| 3xtp2dep4-"))
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *(
            "3xtp2dep4-1xtp4dep4-mtp-",
            "3.13",
            "2.32",
            "108.71",
            "2.24",
            "7.56",
            "133.67",
            "9.90",
            "85",
        ),
    ]


def test_the_row_of_the_article() -> None:
    document = json.loads(run(*arguments("run7_four_ranks"), "--json").stdout)
    (log,) = document["logs"]
    assert len(log["accounts"]) == 4
    for account in log["accounts"]:
        row = {name: figure for name, figure in account.items() if isinstance(figure, dict)}
        assert {name: round(figure["value"] / 2**30, 2) for name, figure in row.items()} == {
            "total_bytes": 276.62,
            "cuda_context_bytes": 3.13,
            "requested_bytes": 254.49,
            "weights_bytes": 107.51,
            "non_torch_bytes": 2.9,
            "peak_activation_bytes": 1.83,
            "graph_estimate_bytes": 8.29,
            "graph_reserved_bytes": 8.29,
            "graph_used_bytes": 7.51,
            "kv_cache_bytes": 133.96,
        }
    assert log["blocks"][0]["counts"] == [5783]
    assert {request["requests_per_rank"] for request in log["requests"]} == {722.875}


@pytest.mark.parametrize("more", [["--spec", SPEC], QWEN38], ids=["by spec", "by flags"])
def test_the_measured_profile_of_the_engine_is_named(more: list[str]) -> None:
    text = " ".join(run("calibrate", f"{DATA}/run7_four_ranks.log", *more).stdout.split())
    assert (
        "note: measured profile 'run 7' has these settings, and capacity takes its terms for those"
        " assumed here; log less profile, GiB: weights +0.00, CUDA context +0.00, non-torch +0.00,"
        " peak activation +0.00, graphs reserved +0.00, KV cache +0.00 note:"
    ) in text


def copied(tmp_path: Path, *names: str) -> list[str]:
    """Copies of data logs, last written on the day they are of."""
    files = []
    for name in names:
        file = Path(shutil.copy(LOGS / f"{name}.log", tmp_path))
        os.utime(file, (NOW, NOW))
        files.append(str(file))
    return files


def test_a_profile_is_written_and_used(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    target = tmp_path / "new" / "measured.yaml"
    result = run("calibrate", *copied(tmp_path, "run7_four_ranks"), *QWEN38, "--write", str(target))
    assert (result.exit_code, result.stderr) == (0, f"{target}: added 'TP4DP4+EP s528'\n")
    assert target.read_text() == snapshot
    (profile,) = read_profiles(target)
    assert (profile.as_of, profile.source) == ("2026-08-14", "start-up log run7_four_ranks.log")
    flags = [
        *("--layout", "TP4DP4+EP", "--max-num-seqs", "528", "--max-num-batched-tokens", "544"),
        *("--max-cudagraph-capture-size", "528", "--cudagraph-mode", "FULL_DECODE_ONLY"),
        *("--engine-version", "0.26.1rc1.dev1177+ga9a17e709", "--max-model-len", "10240"),
        *(*DTYPES, "--no-enable-prefix-caching", "--profile", str(target), "--json"),
    ]
    capacity = run("capacity", *QWEN38, *flags)
    (engine,) = json.loads(capacity.stdout)["engines"]
    assert engine["memory"]["basis"]["non_torch"] == "measured"
    assert engine["capacity"]["requests_per_rank"] == pytest.approx(722.88, abs=0.2)


def test_generate_takes_a_profile(tmp_path: Path) -> None:
    target = tmp_path / "measured.yaml"
    run("calibrate", *copied(tmp_path, "run7_four_ranks"), *QWEN38, "--write", str(target))
    result = run("generate", SPEC, "--check", "--profile", str(target))
    assert result.exit_code == 0
    target.write_text("version: 2\n")
    result = run("generate", SPEC, "--check", "--profile", str(target))
    assert result.exit_code == 3
    assert result.stderr.startswith(f"error: {target}:1: ")


def test_several_logs_are_several_runs(tmp_path: Path) -> None:
    target = tmp_path / "measured.yaml"
    lines = [
        "non-default args: {'max_num_seqs': 656}",
        *(
            tagged("Worker_DP0_TP0_EP0", "x.py:1", text)
            for text in (
                weights_line(107.51),
                "Profiling CUDA graph memory: FULL=60 (largest=656)",
                "Estimated CUDA graph memory: 8.95 GiB total",
                kv_cache_line(132.85),
                budget_line(RUN_TERMS[8], is_older=False),
            )
        ),
    ]
    other = tmp_path / "run8.log"
    other.write_text("\n".join(lines) + "\n")
    logs = [*copied(tmp_path, "run7_four_ranks"), str(other)]
    result = run("calibrate", *logs, "--spec", SPEC, "--write", str(target))
    assert result.exit_code == 0, result.stderr
    names = [profile.name for profile in read_profiles(target)]
    assert names == ["probe-tp4dep4-cc2048", "probe-tp4dep4-cc2560"]
    assert result.stdout.count("| probe-tp4dep4") == 2


HINT = "name the log of a vLLM worker"


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ([f"{DATA}/gone.log"], [f"{DATA}/gone.log: no such file (check the path)"]),
        ([DATA], [f"{DATA}: is a folder, not a file (name a file)"]),
        ([os.devnull], [f"{os.devnull}: is empty ({HINT})"]),
        (
            [f"{DATA}/sglang.log", f"{DATA}/tensorrt_llm.log", f"{DATA}/run7_four_ranks.log"],
            [
                f"{DATA}/sglang.log: is a log of SGLang, and only vLLM's can be read ({HINT})",
                (
                    f"{DATA}/tensorrt_llm.log: is a log of TensorRT-LLM, and only vLLM's can be"
                    f" read ({HINT})"
                ),
            ],
        ),
        (
            [f"{MODEL}/config.json"],
            [
                (
                    f"{MODEL}/config.json: no start-up line of vLLM in its 131 lines (name a"
                    " worker's log, with VLLM_LOGGING_LEVEL at INFO or below)"
                )
            ],
        ),
        (
            [f"{DATA}/run7_four_ranks.log", *QWEN38, "--layout", "TP4DP4+EP", "--mtp", "3"],
            [
                (
                    f"{DATA}/run7_four_ranks.log:5: num-speculative-tokens is 0 in the log, but"
                    " --mtp says 3 (leave the option out, or name the log's own engine)"
                )
            ],
        ),
        (
            [f"{DATA}/t03_old_style.log", "--spec", SPEC],
            [
                (
                    f"{DATA}/t03_old_style.log: is of no engine of {SPEC} (name one with --engine"
                    " to see where they differ)"
                )
            ],
        ),
        (
            [f"{DATA}/run7_four_ranks.log", "--spec", SPEC, "--engine", "probe-tep8-mtp-cc4"],
            [
                f"{DATA}/run7_four_ranks.log:{line}: {flag} is {logged} in the log, but"
                f" probe-tep8-mtp-cc4 of {SPEC} says {said} (leave the option out, or name the"
                " log's own engine)"
                for line, flag, logged, said in (
                    (5, "tensor-parallel-size", 4, "TEP8"),
                    (5, "data-parallel-size", 4, "TEP8"),
                    (9, "the highest data parallel rank", 3, "TEP8"),
                    (2, "max-num-seqs", 528, 20),
                    (4, "max-num-batched-tokens", 544, 96),
                    (5, "max-cudagraph-capture-size", 528, 80),
                    (5, "num-speculative-tokens", 0, 3),
                )
            ],
        ),
    ],
    ids=["missing", "folder", "empty", "other engines", "no log", "option", "spec", "engine"],
)
def test_what_is_refused(given: list[str], problems: list[str]) -> None:
    result = run("calibrate", *given)
    assert sorted(result.stderr.splitlines()) == sorted(f"error: {text}" for text in problems)
    assert (result.exit_code, result.stdout) == (3, "")


def test_problems_are_json_where_the_answer_was_to_be() -> None:
    result = run("calibrate", f"{DATA}/gone.log", "--json")
    error: dict[str, Any] = json.loads(result.stderr)
    assert (result.exit_code, error["error"]) == (3, "invalid-input")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "name start-up logs, or a file of results by --results"),
        (["--spec", SPEC, "--mtp", "0"], "leave out --mtp"),
        (["--engine", "probe"], "--engine names an engine of --spec"),
        (["--gpu", "gb300"], "add --model"),
        (["--mtp", "3"], "add --model and --gpu"),
        ([*QWEN38, "--isl", "8192"], "--isl and --osl go together"),
    ],
    ids=["no log", "spec and flag", "engine", "gpu alone", "flag alone", "isl alone"],
)
def test_what_click_refuses(given: list[str], message: str) -> None:
    logs = [f"{DATA}/run7_four_ranks.log"] if given else []
    result = run("calibrate", *logs, *given)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_profile_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "measured.yaml"
    logs = copied(tmp_path, "run7_four_ranks", "run1_ends_early")
    result = run("calibrate", *logs, "--spec", SPEC, "--write", str(target))
    assert result.exit_code == 3
    assert "NOT FOUND in the log: total, cuda context" in result.stderr
    assert not target.exists()


def test_problems_of_all_logs_are_said_at_once(tmp_path: Path) -> None:
    logs = copied(tmp_path, "t03_old_style", "t17_refused")
    result = run("calibrate", *logs, "--spec", SPEC)
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == logs


def test_a_pipe_is_read_as_it_comes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = (LOGS / "t03_old_style.log").read_bytes()
    writer = Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    result = run("calibrate", str(pipe))
    writer.join()
    assert result.exit_code == 0
    assert "1,581,104" in result.stdout


def test_the_shared_samples(shared: Path) -> None:
    new = run("calibrate", str(shared / "samples/vllm_startup_new_style.log"), "--spec", SPEC)
    for figure in ("3.13", "2.90", "107.51", "1.83", "8.29", "133.96", "7.51", "722.88"):
        assert f" {figure} " in new.stdout
    old = run("calibrate", str(shared / "samples/vllm_startup_old_style.log"))
    assert "blocks of one group x block size" in old.stdout
