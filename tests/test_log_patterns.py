"""What one line of a start-up log says, in every wording and any state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.startup_log import Process
from generator.startup_log.patterns import process_before, rank_values
from tests.composed_logs import (
    capacity_lines,
    kv_cache_line,
    tagged,
    weights_line,
)
from tests.log_wordings import ARGUMENTS, CONFIG, WORDINGS, gib, read


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_wording_is_read(wording: str) -> None:
    text, expected = WORDINGS[wording]
    found: dict[str, Any] = {}
    for _, values in rank_values(text):
        found |= values
    assert found == expected


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_wording_passes_the_filter_of_lines(wording: str, tmp_path: Path) -> None:
    text, expected = WORDINGS[wording]
    log = read(tmp_path, "before", tagged("Worker_TP0", "x.py:1", text), "after")
    ((process, reading),) = log.readings(next(iter(expected)))
    assert (process.tag, reading.line) == ("Worker_TP0", 2)


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("Worker", {}),
        ("EngineCore", {}),
        ("EngineCore_DP3", {"data": 3}),
        ("Worker_TP1", {"tensor": 1}),
        ("Worker_DP1_TP0_EP4", {"data": 1, "tensor": 0, "expert": 4}),
        ("Worker_DP0_PP1_PCP2_TP3_DCP0_EP7", {"data": 0, "pipeline": 1, "tensor": 3, "expert": 7}),
    ],
)
def test_tags_name_ranks(tag: str, expected: dict[str, int]) -> None:
    process, pid = process_before(f"({tag} pid=17) INFO", 100)
    assert (process, pid) == (Process(tag=tag, **expected), "17")


_PARTS = st.sampled_from(
    [
        *(text for text, _ in WORDINGS.values()),
        CONFIG,
        ARGUMENTS,
        "(Worker_DP1_TP0_EP4 pid=3) ",
        "(EngineCore pid=4) ",
        "\r",
        "\n",
        "99999999999999999999 GiB",
        " GiB LLM engine (v",
        "'cudagraph_capture_sizes': []",
        "largest=x",
    ]
)


@given(st.lists(_PARTS, max_size=12).map("".join), st.integers(0, 400))
def test_any_mixture_of_lines_is_read(text: str, cut: int) -> None:
    """Cut short anywhere, as a log that ends early is."""
    for _, values in rank_values(text[: len(text) - cut]):
        assert values


_FIGURE = st.decimals(0, 999, places=2).map(lambda value: f"{value:.2f}")


@given(
    weights=_FIGURE,
    kv_cache=_FIGURE,
    tokens=st.integers(0, 10**12),
    length=st.integers(1, 10**7),
    requests=st.integers(0, 10**8),
)
def test_figures_come_back(
    weights: str, kv_cache: str, tokens: int, length: int, requests: int
) -> None:
    concurrency = requests / 100
    found: dict[str, Any] = {}
    for line in (
        weights_line(float(weights)),
        kv_cache_line(float(kv_cache)),
        *capacity_lines(tokens, length, concurrency),
    ):
        for _, values in rank_values(line):
            found |= values
    assert found == {
        "weights_bytes": gib(weights),
        "kv_cache_bytes": gib(kv_cache),
        "kv_cache_tokens": tokens,
        "max_model_len": length,
        "concurrency": concurrency,
    }
