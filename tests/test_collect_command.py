"""`pdrecipe collect` on folders of runs: records, what is left out, and what never changes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from generator.cli import main
from generator.collection.allocated import allocated_gpus
from generator.collection.collect import CollectionOptions, _Collector
from generator.collection.ran_recipe import read_ran_recipe
from generator.collection.worker_logs import WorkerLogs
from generator.documents import parse_document, read_document
from generator.normal_form import normal_form
from generator.recipe.expansion import variants
from generator.recipe_engines import allocation
from generator.results.point import Goodput, MeasuredPoint, Origin
from generator.results.point_file import read_points
from generator.results.run_marker import RunMarker, read_run_marker, write_run_marker
from generator.sweep.node_count import gpus_per_node, node_count
from generator.sweep.points import recipe_digest
from generator.validation import schema
from tests.run_outputs import (
    SA_BENCH_FOLDER,
    aiperf,
    sa_bench,
    without_lists,
    write_json,
    write_run,
)
from tests.swept_recipes import V1, V2, data, edited

REPORT = f"{SA_BENCH_FOLDER}/results_concurrency_4_gpus_16_ctx_8_gen_8.json"
REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLES = REPOSITORY.parent / "shared/samples"
WORKER_LOG = """\
(EngineCore pid=9) INFO 11-30 00:10:00 [core.py:1] Initializing a V1 LLM engine (v0.26.1) with
(APIServer pid=1) INFO 11-30 00:15:30 [loggers.py:1] Avg prompt throughput: 1.0, Preemptions: 9, x
(APIServer pid=1) INFO 11-30 00:15:50 [loggers.py:1] Avg prompt throughput: 1.0, Preemptions: 2, x
(APIServer pid=1) INFO 11-30 00:15:58 [loggers.py:1] Avg prompt throughput: 1.0, GPU KV cache 1 %
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["collect", *map(str, arguments)])


def collected(folder: Path, *arguments: object) -> tuple[dict[int, MeasuredPoint], Result]:
    """The points by concurrency, and what was said."""
    out = folder.parent / "results.jsonl"
    result = run(folder, "--out", out, *arguments)
    assert result.exit_code == 0, result.stderr
    return {point.subject.concurrency: point for point in read_points(out)}, result


def test_a_run_becomes_records(tmp_path: Path) -> None:
    write_run(tmp_path / "out/9004", sa_bench(4), sa_bench(8))
    points, result = collected(tmp_path / "out")
    assert set(points) == {4, 8}
    point = points[4]
    assert point.subject.digest == recipe_digest(data())
    assert point.subject.configuration == "1xTP8 + 1xTP8"
    assert (point.gpus.prefill, point.gpus.decode, point.gpus.total) == (8, 8, 16)
    assert point.total_tokens_per_s_per_gpu == pytest.approx((800 + 40) / 2 / 16)
    assert point.tokens_per_s_per_user == pytest.approx(100)
    assert point.run == "9004"
    assert point.sources == {
        "figures": f"9004/{REPORT}",
        "latencies": f"9004/{REPORT}",
        "recipe": "9004/config.yaml",
        "gpus": "9004/config.yaml",
        "versions": "9004/config.yaml",
    }
    assert result.stdout.splitlines() == [
        "| configuration | phase         | GPUs | concurrency | valid | invalid |",
        "| ------------- | ------------- | ---: | ----------: | ----: | ------: |",
        "| 1xTP8 + 1xTP8 | disaggregated |   16 |         4 8 |     2 |       0 |",
    ]


def test_the_contract_and_the_factors(tmp_path: Path) -> None:
    args = "args: {tensor-parallel-size: 8, kv-cache-dtype: fp8, max-num-seqs: 20}}\nbenchmark"
    recipe = edited(V2, ("args: {tensor-parallel-size: 8}}\nbenchmark", args))
    write_run(tmp_path / "out/1", sa_bench(4), recipe=recipe)
    points, _ = collected(tmp_path / "out")
    held = points[4].contract
    assert held["engine.kv-cache-dtype"] == "decode fp8"
    assert held["workload.random_range_ratio"] == "0.8"  # srt-slurm's default
    assert held["load.warmup"] == "excluded, 2 x concurrency"
    assert (held["load.loop"], held["load.request_rate"]) == ("closed", "inf")
    assert held["tokenizer.id"] == "/model"
    assert held["gpu.type"] == "gb300"
    assert points[4].factors == {
        "configuration": "1xTP8 + 1xTP8",
        "decode.max-num-seqs": "20",
    }


def test_both_layouts_give_the_same_subject_but_for_the_digest(tmp_path: Path) -> None:
    write_run(tmp_path / "a/1", sa_bench(4), recipe=V1)
    write_run(tmp_path / "b/1", sa_bench(4), recipe=V2)
    (one, _), (other, _) = collected(tmp_path / "a"), collected(tmp_path / "b")
    assert one[4].subject.configuration == other[4].subject.configuration
    assert (one[4].contract, one[4].gpus) == (other[4].contract, other[4].gpus)


PHASES = {
    "prefill": ("isl: 8192, osl: 2", "prefill"),
    "decode": ("isl: 1, osl: 1000", "decode"),
    "both": ("isl: 8192, osl: 1024", "aggregated"),
}
SEPARATE = """\
  prefill: {nodes: 2, workers: 1, gpus: 8, args: {tensor-parallel-size: 8}}
  decode: {nodes: 2, workers: 1, gpus: 8, args: {tensor-parallel-size: 8}}
"""
TOGETHER = """\
  agg:
    nodes: 2
    workers: 1
    gpus: 8
    args:
      tensor-parallel-size: 8
      enable-expert-parallel: true
      speculative_config.method: mtp
      speculative_config.num_speculative_tokens: 3
"""
AGGREGATED = edited(V2, (SEPARATE, TOGETHER))


@pytest.mark.parametrize(("lengths", "phase"), PHASES.values(), ids=PHASES)
def test_phases_of_one_engine(tmp_path: Path, lengths: str, phase: str) -> None:
    recipe = edited(AGGREGATED, ("isl: 8192, osl: 1024", lengths))
    write_run(tmp_path / "out/1", sa_bench(4), recipe=recipe)
    points, _ = collected(tmp_path / "out")
    assert points[4].subject.phase == phase
    assert points[4].subject.configuration == "1xTEP8 MTP3"
    assert points[4].gpus.aggregated == 8


GPUS = {
    "colocated": (
        ("decode: {nodes: 2, workers: 1, gpus: 8", "decode: {nodes: colocate, workers: 1, gpus: 3"),
        (5, 3, 0),
    ),
    "a frontend alone": (
        ("enable_multiple_frontends: false}", "placement: {node: dedicated}}"),
        (8, 8, 4),
    ),
}


@pytest.mark.parametrize(("edit", "expected"), GPUS.values(), ids=GPUS)
def test_gpus_by_role(tmp_path: Path, edit: tuple[str, str], expected: tuple[int, ...]) -> None:
    write_run(tmp_path / "out/1", sa_bench(4), recipe=edited(V2, edit))
    points, _ = collected(tmp_path / "out")
    gpus = points[4].gpus
    assert (gpus.prefill, gpus.decode, gpus.other) == expected


def test_nodes_beyond_the_recipe_are_other(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    snapshot = {"nodes": {"count": 5}, "gpus": {"configured_per_node": 4}}
    write_json(folder / "resource_snapshot.json", snapshot)
    points, result = collected(tmp_path / "out")
    assert (points[4].gpus.other, points[4].gpus.total) == (4, 20)
    assert points[4].sources["gpus"] == "1/config.yaml"
    assert points[4].sources["gpus_held"] == "1/resource_snapshot.json"
    assert "resource_snapshot.json: says 20 GPUs: 4 more than the recipe" in result.stderr


def test_worker_logs_tell_versions_and_preemptions(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    (folder / "logs/n1_decode_w0.out").write_text(WORKER_LOG, encoding="utf-8")
    points, _ = collected(tmp_path / "out")
    assert points[4].preemptions == 2  # the interval is 00:15:49 to 00:15:51
    assert points[4].contract["vllm.version"] == "0.26.1"
    assert points[4].sources["versions"] == "1/logs/n1_decode_w0.out"


def test_a_point_may_last_over_new_year() -> None:
    """The stamps of vLLM have no year; lines come up to 10 s after what they count."""
    reports = (((12, 31, 23, 59, 50), 3), ((1, 1, 0, 0, 15), 4), ((1, 1, 0, 5, 0), 9))
    started = datetime(2026, 12, 31, 23, 59, 40)  # noqa: DTZ001 - the client's clock has no zone
    assert WorkerLogs(reports=reports).preemptions(started, 30) == 7


def test_no_preemptions_in_the_logs_are_no_zero(tmp_path: Path) -> None:
    """Several releases of vLLM never print them."""
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    log = re.sub(r"Preemptions: \d, ", "", WORKER_LOG)
    (folder / "logs/n1_decode_w0.out").write_text(log, encoding="utf-8")
    points, _ = collected(tmp_path / "out")
    assert points[4].preemptions is None
    assert "preemptions" not in points[4].sources


def accuracy_run(folder: Path, *scores: float) -> None:
    benchmark = "benchmark: {type: gsm8k, repeat: 2}\n"
    text = V2[: V2.index("benchmark:")].replace("tiny-1p1d", "tiny-1p1d-acc") + benchmark
    write_run(folder, recipe=text)
    for number, score in enumerate(scores):
        document = {"accuracy": score, "num_questions": 100}
        write_json(folder / f"logs/accuracy/gsm8k_run{number}.json", document)


def test_accuracy_of_the_deployment(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", sa_bench(4))
    write_run(tmp_path / "out/2", sa_bench(8), recipe=V2.replace("image", "image2"))
    accuracy_run(tmp_path / "out/3", 0.94, 0.96)
    points, _ = collected(tmp_path / "out", "--min-accuracy", 0.951)
    assert points[4].accuracy is not None
    assert points[4].accuracy.score == pytest.approx(0.95)
    assert [each.code for each in points[4].invalid] == ["accuracy"]
    assert points[8].accuracy is None  # another image
    assert points[4].sources["accuracy"].startswith("3/logs/accuracy/gsm8k_run0.json, 3/")


def test_the_threshold_of_a_spec(tmp_path: Path, repository: Path) -> None:
    source = repository / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
    text = source.read_text("utf-8")
    spec = tmp_path / "spec.yaml"
    spec.write_text(edited(text, ("accuracy: {", "accuracy: {threshold: 0.96, ")), "utf-8")
    write_run(tmp_path / "out/1", sa_bench(4))
    accuracy_run(tmp_path / "out/3", 0.95)
    points, _ = collected(tmp_path / "out", "--spec", spec)
    assert [each.code for each in points[4].invalid] == ["accuracy"]
    result = run(tmp_path / "out", "--spec", source)
    assert result.exit_code == 3
    assert "has no accuracy threshold" in result.stderr


def test_own_accuracy_recipes_are_of_their_deployments(repository: Path) -> None:
    folder = repository / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg"
    found = sorted(folder.glob("v*/accuracy/*-acc.yaml"))
    assert found
    for path in found:
        own = path.parent.parent / path.name.replace("-acc", "")
        assert read_ran_recipe(path).deployment == read_ran_recipe(own).deployment


def test_aiperf_runs(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1")
    write_json(folder / "logs/artifacts/x/profile_export_aiperf.json", aiperf(16))
    metrics = {"parameters": {"concurrency": 16}, "metrics": aiperf(16)}
    other = {"parameters": {"concurrency": 32}, "metrics": aiperf(32)}
    document = {"metadata": {}, "per_combination_metrics": [metrics, other]}
    write_json(folder / "logs/artifacts/profile_export_aiperf_sweep.json", document)
    points, result = collected(tmp_path / "out")
    assert [points[load].client for load in (16, 32)] == ["aiperf 0.13.0", "aiperf sweep"]
    assert points[16].client_tokens_per_s_per_user == 110
    assert points[16].tokens_per_s_per_user == 125  # 1000 / 8 ms
    assert points[16].sources["server_tokens"] == points[16].sources["figures"]
    assert "warning" not in result.stderr


def test_the_rollup_stands_in_for_a_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    common = {"completed_requests": 8, "total_input_tokens": 800, "total_output_tokens": 40}
    loads = [{"concurrency": load, "throughput_toks": 20.0, **common} for load in (4, 8)]
    write_json(folder / "logs/benchmark-rollup.json", {"runs": loads})
    points, result = collected(tmp_path / "out")
    assert [points[load].client for load in (4, 8)] == ["sa-bench", "sa-bench rollup"]
    assert "stands in for concurrency 8, whose report is missing" in result.stderr
    # One benchmark ran both loads: the frontier takes them together.
    assert points[8].contract == points[4].contract
    assert points[8].contract["client.backend"] == "dynamo"
    frontier = CliRunner().invoke(
        main, ["pareto", str(tmp_path / "results.jsonl"), "--x", "concurrency"]
    )
    assert "2 points of 1 curve; 2 on the frontier." in frontier.stdout, frontier.stderr


LOCKED = (
    V2
    + """
lock:
  fingerprints:
    prefill_w0: {frameworks: {vllm: 0.26.1, dynamo: 1.6.1}, cuda_version: '13.0'}
    decode_w0: {frameworks: {vllm: 0.26.2, dynamo: 1.6.1}, cuda_version: unavailable}
"""
)


def test_the_lock_tells_versions_and_is_no_part_of_the_recipe(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    (folder / "recipe.lock.yaml").write_text(LOCKED, encoding="utf-8")
    points, result = collected(tmp_path / "out")
    held = points[4].contract
    assert (held["vllm.version"], held["dynamo.version"]) == ("0.26.1, 0.26.2", "1.6.1")
    assert held["cuda.version"] == "13.0"
    assert points[4].sources["versions"] == "1/recipe.lock.yaml"
    (folder / "config.yaml").unlink()
    alone, _ = collected(tmp_path / "out")
    assert alone[4].subject == points[4].subject
    assert "warning" not in result.stderr


def test_a_lock_that_ends_early_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    whole = LOCKED.replace("lock:\n", "lock:\n  version: 2\n") + "  integrity: 7c9f\n"
    path = folder / "recipe.lock.yaml"
    path.write_text(whole, encoding="utf-8")
    assert "warning" not in collected(tmp_path / "out")[1].stderr
    path.write_text(whole.partition("    decode_w0")[0], encoding="utf-8")
    points, result = collected(tmp_path / "out")
    assert "1/recipe.lock.yaml: ends early: its lock section has no end" in result.stderr
    assert points[4].contract["vllm.version"] == "0.26.1"
    path.write_text(whole.partition("lock:")[0], encoding="utf-8")
    points, result = collected(tmp_path / "out")
    assert "1/recipe.lock.yaml: ends before its lock section" in result.stderr
    assert points[4].sources["versions"] == "1/config.yaml"
    (folder / "config.yaml").unlink()  # the recipe itself may be cut off
    assert run(tmp_path / "out", "--out", tmp_path / "none.jsonl").exit_code == 3


# --- what is left out -------------------------------------------------------------------------


def _broken_recipe(folder: Path) -> None:
    (folder / "config.yaml").write_text("a: [", encoding="utf-8")


def _other_lock(folder: Path) -> None:
    text = LOCKED.replace("8192", "4096")
    (folder / "recipe.lock.yaml").write_text(text, encoding="utf-8")


def _no_gpus(folder: Path) -> None:
    text = V2.replace("gpus_per_node: 4", "gpus_per_node: 0")
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def _no_gpus_of_a_worker(folder: Path) -> None:
    text = edited(
        V2, ("prefill: {nodes: 2, workers: 1, gpus: 8", "prefill: {nodes: 2, workers: 1, gpus: 0")
    )
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def _several(folder: Path) -> None:
    (folder / "config.yaml").write_text(f"{V2}sweep: {{a: [1]}}\n", encoding="utf-8")


def _truncated(folder: Path) -> None:
    path = folder / REPORT
    path.write_bytes(path.read_bytes()[:-200])


def _partial(folder: Path) -> None:
    path = folder / REPORT
    path.rename(path.with_name(path.name + ".tmp"))


def _few_gpus(folder: Path) -> None:
    resources = {"gpus_per_node": 4, "prefill_nodes": 1, "decode_nodes": 2, "agg_nodes": None}
    write_json(folder / "9004.json", {"job_id": "9004", "resources": resources})


def _small_job(folder: Path) -> None:
    snapshot = {"nodes": {"count": 3}, "gpus": {"configured_per_node": 4}}
    write_json(folder / "resource_snapshot.json", snapshot)


def _broken_marker(folder: Path) -> None:
    write_json(folder / "pdrecipe-run.json", {"version": 1, "origin": "dreamt"})


def _deep_marker(folder: Path) -> None:
    (folder / "pdrecipe-run.json").write_text("[" * 100_000)


def _unknown_format(folder: Path) -> None:
    write_json(folder / REPORT, {"concurrency": 4})


def _backward(folder: Path) -> None:
    write_json(folder / REPORT, sa_bench(4, itls=[[-1.0] * 4] * 8))


def _beyond_all_nodes(folder: Path) -> None:
    text = V2.replace("gpus_per_node: 4", "gpus_per_node: 40000000000")
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def _later_schema(folder: Path) -> None:
    text = V2.replace("schema: 2", "schema: 3")
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def _too_fast(folder: Path) -> None:
    write_json(folder / REPORT, without_lists(max_concurrency=4, median_tpot_ms=1e-9))


def _too_slow(folder: Path) -> None:
    write_json(folder / REPORT, sa_bench(4, ttfts=[1e14] * 8))


def _rollup_of_no_load(folder: Path) -> None:
    (folder / REPORT).unlink()
    counts = {"completed_requests": 8, "total_input_tokens": 800, "total_output_tokens": 40}
    run = {"concurrency": 0, "throughput_toks": 20.0, **counts}
    write_json(folder / "logs/benchmark-rollup.json", {"runs": [run]})


def _packed(folder: Path) -> None:
    path = folder / REPORT
    path.rename(path.with_name(path.name + ".gz"))


LEFT_OUT = {
    "more GPUs than there are": (_beyond_all_nodes, "gpus_per_node is 40000000000, not a count"),
    "faster than anything": (_too_fast, "is left out: latencies.tpot has a time below 1e-06 ms"),
    "slower than anything": (_too_slow, "is left out: latencies.ttft.mean has 1e+17, not a number"),
    "a rollup of no load": (_rollup_of_no_load, "is left out: it counts no GPU or no concurrency"),
    "a later schema": (_later_schema, "bad/config.yaml: is of schema 3, which this pdrecipe does"),
    "packed": (_packed, f"bad/{REPORT}.gz: is packed: unpack it"),
    "broken recipe": (_broken_recipe, "bad/config.yaml: "),
    "another recipe in the lock": (_other_lock, "bad/config.yaml: differs from recipe.lock.yaml"),
    "no GPUs": (_no_gpus, "bad/config.yaml: allocates no GPU to workers"),
    "workers without GPUs": (
        _no_gpus_of_a_worker,
        "bad/config.yaml: roles.prefill.gpus is 0: its workers have no GPU",
    ),
    "several recipes": (_several, "bad/config.yaml: holds several recipes"),
    "truncated": (_truncated, f"bad/{REPORT}: is not JSON: it ends early or is damaged"),
    "partial": (_partial, f"bad/{REPORT}.tmp: is partial"),
    "fewer GPUs of workers": (_few_gpus, "bad/9004.json: says 12 GPUs for workers, the recipe 16"),
    "fewer nodes": (_small_job, "says 12 GPUs, the recipe allocates 16"),
    "broken marker": (_broken_marker, "bad/pdrecipe-run.json: is broken"),
    "deep marker": (_deep_marker, "bad/pdrecipe-run.json: is broken"),
    "unknown format": (_unknown_format, f"bad/{REPORT}: is no sa-bench result"),
    "backward clock": (_backward, f"bad/{REPORT}: the gaps of request 0 have a negative one"),
}


@pytest.mark.parametrize(("spoil", "message"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_broken_is_one_line_and_spoils_nothing_else(
    tmp_path: Path, spoil: Any, message: str
) -> None:
    write_run(tmp_path / "out/good", sa_bench(8))
    spoil(write_run(tmp_path / "out/bad", sa_bench(4)))
    points, result = collected(tmp_path / "out")
    assert set(points) == {8}
    lines = [line for line in result.stderr.splitlines() if message in line]
    assert len(lines) == 1, result.stderr
    alone = run(tmp_path / "out/bad", "--out", tmp_path / "none.jsonl")
    assert alone.exit_code == 3
    assert "no point was collected" in alone.stderr
    assert not (tmp_path / "none.jsonl").exists()


def test_results_without_a_recipe_and_folders_without_runs(tmp_path: Path) -> None:
    write_json(tmp_path / "out" / Path(REPORT).name, sa_bench())
    (tmp_path / "empty").mkdir()
    result = run(tmp_path / "out", tmp_path / "empty")
    assert result.exit_code == 3
    assert "belongs to no run: no config.yaml or recipe.lock.yaml around it" in result.stderr
    assert f"{tmp_path / 'empty'}: holds no run folder" in result.stderr


def test_the_logs_of_a_run_are_of_that_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    both = run(folder / "logs", folder, "--out", tmp_path / "r.jsonl")
    assert both.stderr.startswith("1 point from 1 run, 0 invalid")
    alone = run(folder / "logs", "--out", tmp_path / "none.jsonl")
    assert alone.exit_code == 3
    assert f"belongs to {folder}: name that folder" in alone.stderr


def test_a_run_folder_may_be_called_logs(tmp_path: Path) -> None:
    write_run(tmp_path / "logs", sa_bench(4))
    points, _ = collected(tmp_path / "logs")
    assert set(points) == {4}


def test_links_are_not_followed_and_that_is_said(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", sa_bench(4))
    (tmp_path / "chosen").mkdir()
    (tmp_path / "chosen/1").symlink_to(tmp_path / "out/1")
    result = run(tmp_path / "chosen", "--out", tmp_path / "none.jsonl")
    assert result.exit_code == 3
    assert "links are not followed (name the folders that they point to)" in result.stderr
    points, _ = collected(tmp_path / "chosen/1")
    assert set(points) == {4}


# --- origins, order, repetition ---------------------------------------------------------------


def test_goodput_is_counted_where_limits_are_given(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", sa_bench(4), without_lists(max_concurrency=8))
    points, _ = collected(tmp_path / "out", "--ttft-ms", "100", "--max-gap-ms", "10")
    assert points[4].goodput == Goodput(
        ttft_ms=100, max_gap_ms=10, requests_per_s=8 / 2, tokens_per_s=8 * 5 / 2
    )
    assert points[4].sources["goodput"] == points[4].sources["latencies"]
    assert points[8].goodput is None
    frontier = CliRunner().invoke(
        main,
        ["pareto", str(tmp_path / "results.jsonl"), "--x", "goodput_tokens_per_s_per_gpu"],
    )
    assert f" {20 / 16:.2f} | " in frontier.stdout
    assert "left out: 1 no goodput (collect --ttft-ms --max-gap-ms counts it)" in frontier.stdout
    plain, _ = collected(tmp_path / "out")
    assert plain[4].goodput is None
    half = run(tmp_path / "out", "--ttft-ms", "100", "--out", tmp_path / "none.jsonl")
    assert half.exit_code == 2
    assert "--max-gap-ms" in half.stderr


@pytest.mark.parametrize("name", [REPORT, "config.yaml", "recipe.lock.yaml"])
def test_a_pipe_among_the_files_is_named_and_not_waited_for(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "out/1", sa_bench(8))
    run_folder = write_run(tmp_path / "out/2", sa_bench(16))
    (run_folder / name).unlink(missing_ok=True)
    os.mkfifo(run_folder / name)
    points, result = collected(tmp_path / "out")
    assert 8 in points
    assert f"2/{name}: is no regular file" in result.stderr


@pytest.mark.parametrize(
    ("folders", "path", "name"),
    [
        (["/data/a", "/data/b"], "/data/a/1/config.yaml", "a/1/config.yaml"),
        (["/data/a", "/data/ab"], "/data/ab/1", "ab/1"),
        (["/data/a", "/scratch/b"], "/data/a/1", "data/a/1"),
        (["/data/a"], "/data/a", "."),
        (["/data/a"], "/data/ab/1", "/data/ab/1"),
    ],
)
def test_files_are_called_from_what_the_folders_share(
    folders: list[str], path: str, name: str
) -> None:
    assert _Collector([*map(Path, folders)], CollectionOptions())._name(Path(path)) == name


def test_a_pipe_for_a_marker_leaves_the_run_out(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", sa_bench(8))
    os.mkfifo(write_run(tmp_path / "out/2", sa_bench(16)) / "pdrecipe-run.json")
    points, result = collected(tmp_path / "out")
    assert set(points) == {8}
    assert "2/pdrecipe-run.json: is no regular file" in result.stderr


def test_rehearsals_mark_themselves(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4))
    write_run(tmp_path / "out/2", sa_bench(8))
    marker = RunMarker(origin=Origin.REHEARSAL, note="mocker")
    write_run_marker(folder, marker)
    assert read_run_marker(folder) == marker
    document = json.loads((folder / "pdrecipe-run.json").read_text("utf-8"))
    assert Draft202012Validator(schema("run")).is_valid(document)
    points, result = collected(tmp_path / "out", "--origin", "synthetic")
    assert [str(points[load].origin) for load in (4, 8)] == ["rehearsal", "synthetic"]
    assert "all rehearsal and synthetic, not measured" in result.stderr


MOCKER = """\
name: mocked
model: {path: /m, container: none, precision: bf16}
resources: {gpu_type: gb300, gpus_per_node: 4, prefill_nodes: 1, prefill_workers: 2,
  gpus_per_prefill: 2, decode_nodes: 1, decode_workers: 1, gpus_per_decode: 4}
backend: {type: mocker, engine_type: vllm}
benchmark: {type: sa-bench, isl: 128, osl: 32, concurrencies: "4x8"}
"""


def test_nothing_was_measured_of_engines_that_only_sleep(tmp_path: Path) -> None:
    """srt-slurm runs Dynamo's mockers like any engine, and marks such a run in no other way."""
    folder = write_run(tmp_path / "out/1", sa_bench(4), sa_bench(8))
    (folder / "config.yaml").write_text(MOCKER)
    points, result = collected(tmp_path / "out")
    assert [str(points[load].origin) for load in (4, 8)] == ["rehearsal", "rehearsal"]
    assert "all rehearsal, not measured" in result.stderr
    points, _ = collected(tmp_path / "out", "--origin", "synthetic")
    assert str(points[4].origin) == "synthetic"


def test_collecting_again_changes_nothing(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        write_run(tmp_path / f"out/{number}", sa_bench(4, duration=float(number)), sa_bench(8))
    _, first = collected(tmp_path / "out")
    before = (tmp_path / "results.jsonl").read_bytes()
    shutil.copytree(tmp_path / "out", tmp_path / "moved/out")
    _, again = collected(tmp_path / "moved/out")
    assert (tmp_path / "moved/results.jsonl").read_bytes() == before
    assert again.stdout == first.stdout


def test_a_copied_run_is_listed_as_duplicate(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", sa_bench(4))
    shutil.copytree(tmp_path / "out/1", tmp_path / "out/2")
    _, result = collected(tmp_path / "out")
    (line,) = [each for each in result.stdout.splitlines() if each.startswith("invalid")]
    assert (
        line == f"invalid: tiny-1p1d at 4, run 2: duplicate: measured once already, in 1/{REPORT}"
    )


def test_one_folder_named_twice_is_read_once(tmp_path: Path) -> None:
    write_run(tmp_path / "out/1", sa_bench(4))
    result = run(tmp_path / "out", tmp_path / "out/1", "--out", tmp_path / "r.jsonl")
    assert result.stderr.startswith("1 point from 1 run, 0 invalid")


def test_records_and_summary_are_what_the_schemas_say(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "out/1", sa_bench(4), sa_bench(16))
    write_json(folder / "logs/profile_export_aiperf.json", {"hello": 1})
    accuracy_run(tmp_path / "out/3", 0.95)
    _, result = collected(tmp_path / "out", "--json")
    results = Draft202012Validator(schema("results"))
    for line in (tmp_path / "results.jsonl").read_text("utf-8").splitlines():
        assert [error.message for error in results.iter_errors(json.loads(line))] == []
    document = json.loads(result.stdout)
    assert list(Draft202012Validator(schema("collection")).iter_errors(document)) == []
    (invalid,) = document["invalid"]
    assert invalid["code"] == "fewer-requests-than-concurrency"


def described(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, each in part.get("properties", {}).items():
        yield f"{place}.{name}", each
        yield from described(each, f"{place}.{name}")
        yield from described(each.get("items", {}), f"{place}.{name}[]")


DESCRIBED = [
    pytest.param(name, each, id=place)
    for name in ("results", "collection", "run")
    for place, each in described(schema(name), name)
]


@pytest.mark.parametrize(("name", "part"), DESCRIBED)
def test_property_is_described_and_its_examples_are_valid(name: str, part: dict[str, Any]) -> None:
    assert part["description"].endswith(".")
    alone = Draft202012Validator({**part, "$defs": schema(name).get("$defs", {})})
    assert [each for each in part["examples"] if not alone.is_valid(each)] == []


RECIPES = [
    path
    for folder in (REPOSITORY / "recipes", REPOSITORY.parent / "shared/recipes")
    for path in sorted(folder.rglob("*.yaml"))
    if not {"specs", "sites"} & {*path.parts}
]


def test_gpus_are_those_of_the_nodes_that_a_sweep_asks_for() -> None:
    """One rule in two forms: sweeps read a recipe as it is written, collections its normal form."""
    compared = 0
    for path in RECIPES:
        document = read_document(path)
        if {"base", "sweep"} & {*document.data}:
            continue
        nodes = node_count(document.data)
        assert read_ran_recipe(path).gpus.total == nodes * gpus_per_node(document.data), path
        compared += 1
    assert compared > 30


_ALONE = ("enable_multiple_frontends: false}", "placement: {node: dedicated}}")
_CLIENT = ("req_rate: inf}", "req_rate: inf, placement: {node: dedicated}}")
_APART = (
    "req_rate: inf}",
    "req_rate: inf, placement: {node: dedicated}, colocate_with_frontend: false}",
)


@pytest.mark.parametrize(
    ("edits", "nodes"),
    [
        pytest.param([], 4, id="workers alone"),
        pytest.param([_ALONE], 5, id="frontend"),
        pytest.param([_ALONE, _CLIENT], 5, id="client beside the frontend"),
        pytest.param([_ALONE, _APART], 6, id="client apart"),
    ],
)
def test_reserved_nodes_are_one_rule_for_sweeps_collections_and_diffs(
    edits: list[tuple[str, str]], nodes: int
) -> None:
    document = parse_document(edited(V2, *edits), "tiny.yaml")
    form = normal_form(next(iter(variants(document))))
    size = allocation(form)
    assert size is not None
    assert (size.nodes, node_count(document.data)) == (nodes, nodes)
    assert allocated_gpus(form).total == 4 * nodes


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no ../shared/samples")
def test_real_files_make_a_run(tmp_path: Path) -> None:
    files = (
        "recipe.lock.yaml",
        "results_concurrency_4_gpus_8_ctx_4_gen_4.json",
        "benchmark-rollup.json",
        "benchmark-rollup.csv",
        "jobmeta_9004.json",
        "resource_snapshot.json",
    )
    (tmp_path / "out").mkdir()
    for name in files:
        shutil.copy(SAMPLES / name, tmp_path / "out" / name)
    points, result = collected(tmp_path / "out")
    assert [points[load].client for load in (2, 4)] == ["sa-bench rollup", "sa-bench"]
    assert points[4].tokens_per_s_per_user == pytest.approx(1000 / 6.52, rel=1e-3)
    assert points[4].gpus.total == 8
    assert points[4].contract["dynamo.version"] == "1.6.1"
    assert "left out" not in result.stderr


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no ../shared/samples")
@pytest.mark.parametrize(
    ("name", "load", "tokens_per_s"),
    [
        ("aiperf_c16_profile_export_aiperf.json", 16, 7169.8744921045545),
        ("profile_export_aiperf_sweep.json", 2, 1381.857595635268),
        ("profile_export_aiperf_sweep.json", 8, 4114.022034861882),
    ],
)
def test_rates_are_those_that_aiperf_states(
    tmp_path: Path, name: str, load: int, tokens_per_s: float
) -> None:
    (tmp_path / "out").mkdir()
    for each in ("recipe.lock.yaml", name):
        shutil.copy(SAMPLES / each, tmp_path / "out" / each)
    points, _ = collected(tmp_path / "out")
    assert points[load].total_tokens_per_s == pytest.approx(tokens_per_s, rel=1e-12)
    assert points[load].total_tokens_per_s_per_gpu == pytest.approx(tokens_per_s / 8, rel=1e-12)
