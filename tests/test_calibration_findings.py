"""What a start-up log is flagged for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from generator.calibration import (
    calibration_of,
)
from generator.units import GIB
from generator.workload import Workload
from tests.calibrations import findings_of, log_of, of_run, start_up
from tests.composed_logs import (
    RUN_TERMS,
    block_line,
    kv_cache_line,
    refusal_line,
    tagged,
    weights_line,
)
from tests.recorded_models import qwen38


class TestFindings:
    def test_an_estimate_far_above_the_use(self, repository: Path, tmp_path: Path) -> None:
        terms = replace(RUN_TERMS[1], graph_reserved=33.06, graph_used=8.57, kv_cache=50.87)
        calibration = of_run(repository, tmp_path, 1, terms=terms)
        (finding,) = [f for f in calibration.findings if f.kind == "graph-estimate-above-use"]
        assert finding.is_warning
        recovered = round(50.87 * GIB) + round(33.06 * GIB) - round(8.57 * GIB)
        assert f"--kv-cache-memory-bytes {recovered} (75.36 GiB)" in finding.message
        more = qwen38(tensor=8, mtp=3).num_blocks(recovered) - qwen38(tensor=8, mtp=3).num_blocks(
            round(50.87 * GIB)
        )
        assert f"{more / 22:,.1f} more requests of 10240 tokens per rank" in finding.message
        assert finding.places == ("worker.log:2", "worker.log:4")

    @pytest.mark.parametrize(
        ("number", "kind", "is_warning"),
        [
            (1, "graph-estimate-above-use", True),
            (2, "graph-estimate-above-use", True),
            (4, "graph-estimate-above-use", True),
            (5, "graph-estimate-above-use", True),
            (6, "graph-use-above-estimate", True),
            (7, "graph-estimate-above-use", False),
            (8, "graph-estimate-above-use", False),
        ],
        ids=lambda value: f"run {value}" if isinstance(value, int) and value > 1 else "",
    )
    def test_graphs_of_the_article(
        self, number: int, kind: str, is_warning: bool, repository: Path, tmp_path: Path
    ) -> None:
        found = {f.kind: f for f in of_run(repository, tmp_path, number).findings}
        assert found[kind].is_warning is is_warning

    def test_a_rounded_difference_is_none(self, repository: Path, tmp_path: Path) -> None:
        """Run 3 reserved 1.87 GiB and used 1.88."""
        assert not {
            kind for kind in findings_of(of_run(repository, tmp_path, 3)) if "graph" in kind
        }

    def test_the_slack_covers_what_graphs_use_more(self, repository: Path, tmp_path: Path) -> None:
        message = findings_of(of_run(repository, tmp_path, 6))["graph-use-above-estimate"]
        assert "2.34 GiB more than reserved" in message
        assert "the 19.00 GiB that gpu-memory-utilization leaves" in message

    def test_graphs_that_nothing_is_reserved_for(self, tmp_path: Path) -> None:
        terms = replace(RUN_TERMS[7], kv_cache=RUN_TERMS[7].kv_cache + 8.29)
        log = log_of(tmp_path, *start_up(terms, is_older=True))
        assert "graph-estimate-not-subtracted" in findings_of(calibration_of(log, None))

    def test_concurrency_above_capacity(self, repository: Path, tmp_path: Path) -> None:
        calibration = of_run(repository, tmp_path, 1, concurrency=400)
        message = findings_of(calibration)["concurrency-above-capacity"]
        assert "concurrency 400" in message
        assert "303.0" in message
        assert "concurrency-above-capacity" not in findings_of(
            of_run(repository, tmp_path, 1, concurrency=302)
        )

    def test_max_model_len_below_the_request(self, repository: Path, tmp_path: Path) -> None:
        long = Workload(isl=10000, osl=1000)
        calibration = of_run(repository, tmp_path, 1, workload=long)
        assert findings_of(calibration)["max-model-len-below-request"] == (
            "max-model-len 10240 is below ISL + OSL = 10000 + 1000 = 11000"
        )
        fits = of_run(repository, tmp_path, 1, workload=Workload(isl=9000, osl=1000))
        assert "max-model-len-below-request" not in findings_of(fits)

    def test_ranks_that_disagree(self, tmp_path: Path) -> None:
        lines = [
            tagged(f"Worker_TP{rank}", "x.py:1", message)
            for rank, size in enumerate((83.0, 82.9))
            for message in (kv_cache_line(size), block_line(1088 + rank))
        ]
        found = list(calibration_of(log_of(tmp_path, *lines), None).findings)
        by_warning = {f.is_warning: f for f in found if f.kind == "ranks-disagree"}
        assert by_warning[False].message == (
            "KV cache memory differs between ranks: 82.90 GiB of Worker_TP1 to 83.00 GiB of"
            " Worker_TP0"
        )
        assert by_warning[True].places == ("worker.log:2", "worker.log:4")

    def test_an_account_that_does_not_close(self, tmp_path: Path) -> None:
        odd = replace(RUN_TERMS[7], kv_cache=120.0)
        log = log_of(tmp_path, *start_up(odd, is_older=False))
        message = findings_of(calibration_of(log, None))["account-does-not-close"]
        assert "+13.96 GiB" in message

    @pytest.mark.parametrize(
        ("lines", "kind"),
        [
            ([kv_cache_line(83.0)], "no-budget-line"),
            ([weights_line(1.0), kv_cache_line(8.0), weights_line(1.0)], "several-start-ups"),
            ([refusal_line(262144, 9.29, 9.28, 260800)], "refused"),
            (
                ["reserved 30.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes"],
                "profiling-skipped",
            ),
        ],
    )
    def test_states_of_a_log(self, lines: Sequence[str], kind: str, tmp_path: Path) -> None:
        assert kind in findings_of(calibration_of(log_of(tmp_path, *lines), None))
