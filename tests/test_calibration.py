"""What start-up logs imply: the article's memory table, and the blocks of public logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.calibration import (
    SpecEngines,
    Subject,
    TokensMeaning,
    calibration_of,
)
from generator.calibration.account import LoggedAccount, logged_accounts
from generator.calibration.blocks import LoggedBlocks, logged_blocks, meaning_without_model
from generator.kv_cache.kv_cache import KvCacheLayout, plan_kv_cache
from generator.startup_log import Process, RankReadings, Reading, StartupLog, read_startup_log
from generator.units import GIB, format_gib
from tests import test_startup_logs as truth
from tests.calibrations import SPEC, findings_of, log_of, of_run, start_up
from tests.composed_logs import (
    RUN_TERMS,
    RUNS,
    block_line,
    capacity_lines,
    kv_cache_line,
    padding_line,
    refusal_line,
    tagged,
)
from tests.recorded_models import QWEN38_OPTIONS, attention_only, qwen38


class TestAccount:
    TERMS = (
        "cuda_context",
        "non_torch",
        "weights",
        "peak_activation",
        "graph_reserved",
        "graph_used",
        "kv_cache",
    )

    @pytest.mark.parametrize("is_older", [True, False], ids=["older", "newer"])
    @pytest.mark.parametrize("number", RUNS, ids=lambda number: f"run {number}")
    def test_the_article_s_memory_table(self, number: int, is_older: bool, tmp_path: Path) -> None:
        log = log_of(tmp_path, *start_up(RUN_TERMS[number], is_older=is_older))
        (account,) = logged_accounts(log)
        for term in self.TERMS:
            figure = getattr(account, term)
            assert figure.size_bytes / GIB == pytest.approx(RUNS[number][term], abs=0.0101), term
            assert figure.places
        assert account.gap_bytes is not None
        assert abs(account.gap_bytes) < 0.025 * GIB
        assert account.missing == ()

    def reserved(self, tmp_path: Path, *lines: str) -> str:
        (account,) = logged_accounts(log_of(tmp_path, *lines))
        return (
            "NOT FOUND"
            if account.graph_reserved is None
            else format_gib(account.graph_reserved.size_bytes)
        )

    def test_the_older_budget_shows_that_the_estimate_is_not_taken(self, tmp_path: Path) -> None:
        terms = RUN_TERMS[7]
        kept = replace(terms, kv_cache=terms.kv_cache + terms.graph_reserved)
        assert self.reserved(tmp_path, *start_up(kept, is_older=True)) == "0.00 GiB"

    def test_the_older_budget_contradicts_itself(self, tmp_path: Path) -> None:
        odd = replace(RUN_TERMS[7], kv_cache=120.0)
        assert self.reserved(tmp_path, *start_up(odd, is_older=True)) == "NOT FOUND"

    @pytest.mark.parametrize(
        ("word", "expected"), [("enabled", "8.29 GiB"), ("disabled", "0.00 GiB")]
    )
    def test_the_engine_says_whether_it_takes_it(
        self, word: str, expected: str, tmp_path: Path
    ) -> None:
        lines = list(start_up(RUN_TERMS[7], is_older=False))
        told = tagged("Worker_TP0_EP0", "x.py:1", f"CUDA graph memory profiling is {word} (...)")
        assert self.reserved(tmp_path, *lines[:3], told, *lines[3:]) == expected

    def test_no_graphs_reserve_nothing(self, tmp_path: Path) -> None:
        terms = replace(RUN_TERMS[7], graph_reserved=0.0, graph_used=0.0)
        weights, _, kv_cache, _, budget = start_up(terms, is_older=False)
        assert self.reserved(tmp_path, weights, kv_cache, budget) == "0.00 GiB"

    def test_a_release_that_estimates_nothing(self, tmp_path: Path) -> None:
        terms = replace(RUN_TERMS[7], kv_cache=RUN_TERMS[7].kv_cache + 8.29)
        weights, _, kv_cache, _, budget = start_up(terms, is_older=True)
        assert self.reserved(tmp_path, weights, kv_cache, budget) == "0.00 GiB"

    def test_a_log_that_ends_early(self, tmp_path: Path) -> None:
        (account,) = logged_accounts(
            log_of(tmp_path, *list(start_up(RUN_TERMS[1], is_older=False))[:3])
        )
        assert set(account.missing) == {
            "total",
            "cuda_context",
            "non_torch",
            "peak_activation",
            "graph_reserved",
        }
        assert account.gap_bytes is None

    def test_the_kv_cache_after_a_reserve_counts(self, tmp_path: Path) -> None:
        reduced = "Reserving 2.0 GiB of GPU memory (...); KV cache memory reduced to 81.0 GiB."
        (account,) = logged_accounts(log_of(tmp_path, kv_cache_line(83.0), reduced))
        assert account.kv_cache is not None
        assert account.kv_cache.size_bytes == 81 * GIB


def lines_of(row: dict[str, Any]) -> Iterator[str]:
    """A row of public figures in the lines of the release that printed it."""
    if "block" in row:
        yield block_line(row["block"])
    if "pad" in row:
        yield padding_line(row["pad"])
    available = row.get("avail_gib", row.get("avail_bytes", 0) / GIB)
    if available:
        yield kv_cache_line(available)
    yield from capacity_lines(row.get("kv_tokens"), row.get("mml"), row.get("conc"))
    if "need_gib" in row:
        yield refusal_line(row["mml"], row["need_gib"], available, row.get("est_len"))


ROWS = [row for row in truth._HYBRID_ROWS if row["id"] != "B15"]
STYLES = {"new": TokensMeaning.CONCURRENCY, "old": TokensMeaning.GROUP_BLOCKS}


def solved(row: dict[str, Any], tmp_path: Path) -> LoggedBlocks:
    (blocks,) = logged_blocks(log_of(tmp_path, *lines_of(row)), truth._layout(row), row["mml"])
    return blocks


class TestPublicLogs:
    """The rows of tests/data/startup_logs.json, composed into lines and read back."""

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
    def test_every_figure_comes_back(self, row: dict[str, Any], tmp_path: Path) -> None:
        log = log_of(tmp_path, *lines_of(row))
        expected = {
            "block_tokens": row.get("block"),
            "padding_percent": row.get("pad"),
            "kv_cache_tokens": row.get("kv_tokens"),
            "concurrency": row.get("conc"),
            "longest_request_tokens": row.get("est_len"),
        }
        for name, figure in expected.items():
            assert [reading.value for _, reading in log.readings(name)] == (
                [] if figure is None else [figure]
            ), name

    @pytest.mark.parametrize(
        "row", [row for row in ROWS if "log_style" in row], ids=lambda row: str(row["id"])
    )
    def test_the_token_count_is_understood(self, row: dict[str, Any], tmp_path: Path) -> None:
        blocks = solved(row, tmp_path)
        assert blocks.meaning is STYLES[row["log_style"]]
        assert blocks.counts

    @pytest.mark.parametrize(
        "row", [row for row in ROWS if "log_style" in row], ids=lambda row: str(row["id"])
    )
    def test_it_is_not_taken_for_the_other_without_a_model(
        self, row: dict[str, Any], tmp_path: Path
    ) -> None:
        meaning = meaning_without_model(log_of(tmp_path, *lines_of(row)))
        assert meaning in (STYLES[row["log_style"]], TokensMeaning.NEITHER)
        assert meaning is not TokensMeaning.NEITHER or "block" not in row

    @pytest.mark.parametrize(
        "row", [row for row in ROWS if "need_gib" in row], ids=lambda row: str(row["id"])
    )
    def test_a_refusal_is_less_than_one_request(self, row: dict[str, Any], tmp_path: Path) -> None:
        layout = truth._layout(row)
        blocks = solved(row, tmp_path)
        assert max(blocks.counts) < layout.blocks_per_request(row["mml"])
        assert row["est_len"] in {
            layout.longest_request_tokens(count * layout.block_bytes_per_rank)
            for count in blocks.counts
        }

    @pytest.mark.parametrize("row", truth._PLAIN_ROWS, ids=lambda row: str(row["id"]))
    def test_plain_rows_come_back(self, row: dict[str, Any], tmp_path: Path) -> None:
        for available, tokens in row["pairs"]:
            log = log_of(tmp_path, kv_cache_line(available), *capacity_lines(tokens, None, None))
            assert [reading.value for _, reading in log.readings("kv_cache_tokens")] == [tokens]
            assert meaning_without_model(log) is None


class TestBlocks:
    def blocks(
        self, tmp_path: Path, layout: KvCacheLayout, *lines: str, length: int = 10240
    ) -> LoggedBlocks:
        (found,) = logged_blocks(log_of(tmp_path, *lines), layout, length)
        return found

    def test_the_same_by_both_meanings(self, tmp_path: Path) -> None:
        layout = plan_kv_cache(attention_only(), QWEN38_OPTIONS)
        lines = capacity_lines(16 * 1024, 1024, 16.0)
        found = self.blocks(tmp_path, layout, *lines)
        assert (found.meaning, found.counts) == (TokensMeaning.EITHER, (1024,))

    def test_ambiguous_where_both_fit_with_other_blocks(self, tmp_path: Path) -> None:
        layout = qwen38(tensor=8, mtp=3)
        length = layout.block_tokens
        found = self.blocks(
            tmp_path, layout, *capacity_lines(10 * length, None, None), length=length
        )
        assert found.meaning is TokensMeaning.AMBIGUOUS

    def test_neither(self, tmp_path: Path) -> None:
        lines = (kv_cache_line(83.0), *capacity_lines(12345, 10240, 303.0))
        found = self.blocks(tmp_path, qwen38(tensor=8, mtp=3), *lines)
        assert found.meaning is TokensMeaning.NEITHER

    def test_memory_and_concurrency_contradict_each_other(self, tmp_path: Path) -> None:
        lines = (kv_cache_line(83.0), *capacity_lines(None, 10240, 12.34))
        assert self.blocks(tmp_path, qwen38(tensor=8, mtp=3), *lines).counts == ()

    def test_an_override_is_exact(self, tmp_path: Path) -> None:
        line = "Overriding num_gpu_blocks=6666 with num_gpu_blocks_override=512"
        found = self.blocks(tmp_path, qwen38(tensor=8), kv_cache_line(83.0), line)
        assert found.counts == (512,)

    def test_memory_alone_leaves_the_last_digit_open(self, tmp_path: Path) -> None:
        found = self.blocks(tmp_path, qwen38(tensor=8, mtp=3), kv_cache_line(83.0))
        assert found.counts == (6665, 6666)
        assert found.meaning is None

    def test_every_stage_has_its_own_widest_group(self, tmp_path: Path) -> None:
        layout = qwen38(tensor=8, pipeline=2)
        lines = [
            tagged(f"Worker_PP{stage}_TP0", "x.py:1", kv_cache_line(size))
            for stage, size in enumerate((40.0, 50.0))
        ]
        found = self.blocks(tmp_path, layout, *lines)
        nominal = layout.num_blocks_of_stages((40 * GIB, 50 * GIB))
        assert nominal in found.counts

    def test_data_ranks_are_solved_apart(self, tmp_path: Path) -> None:
        layout = qwen38(tensor=4)
        lines = [
            tagged(f"Worker_DP{rank}_TP0", "x.py:1", kv_cache_line(size))
            for rank, size in enumerate((130.0, 131.0))
        ]
        found = logged_blocks(log_of(tmp_path, *lines), layout, 10240)
        assert [blocks.process.data for blocks in found] == [0, 1]
        assert found[0].counts < found[1].counts

    @given(st.integers(17, 10**6), st.integers(1, 10**5), st.booleans())
    def test_what_the_engine_prints_is_solved(self, blocks: int, length: int, is_new: bool) -> None:
        """The count that made the figures is among those found."""
        layout = qwen38(tensor=4, mtp=3)
        needed = layout.blocks_per_request(length)
        tokens = (layout.logged_tokens if is_new else layout.logged_tokens_until_0_20)(
            blocks, length
        )
        rank = truth_log(tokens, length, blocks / needed, blocks * layout.block_bytes_per_rank)
        (found,) = logged_blocks(rank, layout, length)
        assert blocks in found.counts
        assert found.meaning in (
            STYLES["new" if is_new else "old"],
            TokensMeaning.EITHER,
            TokensMeaning.AMBIGUOUS,
        )


def truth_log(tokens: int, length: int, requests: float, kv_cache_bytes: int) -> StartupLog:
    """A log in memory, its figures rounded as vLLM rounds them."""

    def at(value: Any) -> Reading[Any]:
        return Reading(value=value, source="log", line=1)

    rank = RankReadings(
        kv_cache_bytes=at(round(round(kv_cache_bytes / GIB, 2) * GIB)),
        kv_cache_tokens=at(tokens),
        max_model_len=at(length),
        concurrency=at(round(requests, 2)),
    )
    return StartupLog(
        source="log",
        lines=1,
        start_ups=1,
        engine_version=None,
        model=None,
        capture_sizes=None,
        settings={},
        has_arguments=False,
        ranks=(rank,),
    )


class TestComparison:
    @pytest.mark.parametrize("number", RUNS, ids=lambda number: f"run {number}")
    def test_article_runs_are_as_predicted(
        self, number: int, repository: Path, tmp_path: Path
    ) -> None:
        calibration = of_run(repository, tmp_path, number)
        compared = {item.name: item for item in calibration.compared}
        assert compared["weights"].agrees is True
        assert compared["CUDA graphs"].predicted == RUNS[number]["graphs"]
        assert not [item.name for item in calibration.compared if item.agrees is False]
        (requests,) = calibration.requests
        assert requests.tokens == 10240

    @pytest.mark.parametrize(
        ("flags", "wrong"),
        [
            ({"mamba_ssm_cache_dtype": "float32"}, "block size"),
            ({"kv_cache_dtype": "bfloat16"}, "block size"),
            ({"speculative_config.num_speculative_tokens": 1}, "block size"),
        ],
        ids=["ssm dtype", "kv dtype", "draft tokens"],
    )
    def test_a_wrong_option_shows(
        self, flags: dict[str, Any], wrong: str, repository: Path, tmp_path: Path
    ) -> None:
        calibration = of_run(repository, tmp_path, 1, block_line(1088), **flags)
        assert wrong in findings_of(calibration)["prediction-differs"]

    def test_other_weights_show(self, repository: Path, tmp_path: Path) -> None:
        heavy = replace(RUN_TERMS[1], weights=180.0, kv_cache=72.28)
        calibration = of_run(repository, tmp_path, 1, terms=heavy)
        assert (
            findings_of(calibration)["weights-differ"] == "weights are +6.4 % of what is computed"
        )


def test_nothing_is_known_of_an_empty_account() -> None:
    account = LoggedAccount(process=Process())
    assert len(account.missing) == 7
    assert account.places == ()


def test_the_shared_samples_give_their_figures(shared: Path, repository: Path) -> None:
    log = read_startup_log(shared / "samples" / "vllm_startup_new_style.log", "new.log")
    subject: Subject = SpecEngines(repository / SPEC).subject(log, None)
    calibration = calibration_of(log, subject)
    account = calibration.account
    assert account is not None
    row = {
        name: format_gib(getattr(account, name).size_bytes)
        for name in (
            "weights",
            "peak_activation",
            "non_torch",
            "graph_reserved",
            "kv_cache",
            "graph_used",
        )
    }
    assert row == {
        "weights": "107.51 GiB",
        "peak_activation": "1.83 GiB",
        "non_torch": "2.90 GiB",
        "graph_reserved": "8.29 GiB",
        "kv_cache": "133.96 GiB",
        "graph_used": "7.51 GiB",
    }
    assert {f"{float(requests.per_rank):.2f}" for requests in calibration.requests} == {"722.88"}
    assert not [item.name for item in calibration.compared if item.agrees is False]
