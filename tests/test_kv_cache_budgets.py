from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from generator.kv_cache.kv_cache import KvCacheOptions, align_mode_problem, plan_kv_cache
from generator.kv_cache.mean_length import LengthRange
from generator.units import GIB, MIB
from tests.recorded_models import RECORDS, architecture, attention_only, qwen38


@pytest.mark.parametrize("prefix_caching", [False, True])
@pytest.mark.parametrize("name", RECORDS["models"])
def test_the_longest_request_is_the_longest_that_fits(name: str, prefix_caching: bool) -> None:
    layout = plan_kv_cache(
        architecture(name),
        KvCacheOptions(
            tensor=2,
            num_speculative_tokens=2,
            prefix_caching=prefix_caching,
        ),
    )
    budget = 150 * layout.block_bytes_per_rank
    longest = layout.longest_request_tokens(budget)
    assert longest % layout.block_tokens == 0
    assert layout.blocks_per_request(longest) <= 150 < layout.blocks_per_request(longest + 1)


def test_no_request_fits_where_states_alone_do_not() -> None:
    layout = qwen38(tensor=8, mtp=3)
    assert layout.longest_request_tokens(12 * layout.block_bytes_per_rank) == 0
    assert layout.longest_request_tokens(-1) == 0
    assert layout.num_blocks(-1) == 0


def test_vllm_starts_with_far_more_sequences_than_fit() -> None:
    layout = qwen38(tensor=8, mtp=3)
    assert layout.highest_max_num_seqs(83 * GIB, 9216) == 6666
    assert int(layout.concurrency(83 * GIB, 9216)) == 317
    assert layout.highest_max_num_seqs(20 * layout.block_bytes_per_rank, 9216) == 0


def test_attention_alone_sets_no_limit_to_sequences() -> None:
    layout = plan_kv_cache(attention_only(), KvCacheOptions())
    assert layout.highest_max_num_seqs(2 * GIB, 4096) is None
    assert layout.highest_max_num_seqs(MIB, 4096) == 0


@pytest.mark.parametrize(
    ("mtp", "prefix_caching", "decode_context"),
    [(0, False, 1), (2, True, 1), (0, False, 2)],
)
@pytest.mark.parametrize("name", ["Qwen3.5-397B-A17B", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"])
def test_mean_blocks_are_the_mean_over_every_length(
    name: str, mtp: int, prefix_caching: bool, decode_context: int
) -> None:
    layout = plan_kv_cache(
        architecture(name),
        KvCacheOptions(
            tensor=8,
            num_speculative_tokens=mtp,
            prefix_caching=prefix_caching,
            decode_context=decode_context,
        ),
    )
    prompt = LengthRange(shortest_tokens=900, longest_tokens=1100)
    output = LengthRange(shortest_tokens=1, longest_tokens=60)
    lengths = [p + o for p, o in product(range(900, 1101), range(1, 61))]
    mean = Fraction(sum(map(layout.blocks_per_request, lengths)), len(lengths))
    assert layout.mean_blocks_per_request(prompt, output) == mean
    budget = 1000 * layout.block_bytes_per_rank
    assert layout.concurrency_of_mean_length(budget, prompt, output) == 1000 / mean


def test_a_fixed_length_is_a_range_of_one() -> None:
    layout = qwen38(tensor=8, mtp=3)
    prompt = LengthRange(shortest_tokens=8192, longest_tokens=8192)
    output = LengthRange(shortest_tokens=1024, longest_tokens=1024)
    assert layout.concurrency_of_mean_length(83 * GIB, prompt, output) == layout.concurrency(
        83 * GIB, 9216
    )


def test_align_needs_a_block_in_each_step() -> None:
    layout = qwen38(tensor=4, mtp=3, prefix_caching=True)
    assert align_mode_problem(layout, 2176) is None
    assert str(align_mode_problem(layout, 2048)) == (
        "max-num-batched-tokens: prefix caching aligns states to blocks of 2176 tokens, more than"
        " max-num-batched-tokens 2048 (raise it to at least 2176, or turn prefix caching off)"
    )
    assert align_mode_problem(qwen38(tensor=4, mtp=3), 2048) is None


def test_older_logs_count_the_smallest_block_of_one_group() -> None:
    layout = qwen38(tensor=8)
    assert layout.logged_tokens_until_0_20(6907, 9216) == 6907 // 4 * 1056
    # Without prefix caching a state's block is as long as the longest request.
    assert layout.logged_tokens_until_0_20(6907, 512) == 6907 // 4 * 512
    aligned = qwen38(tensor=8, prefix_caching=True)
    assert aligned.logged_tokens_until_0_20(6907, 512) == 6907 // 4 * 1056
    shared = qwen38(tensor=8, decode_context=2)
    assert shared.logged_tokens_until_0_20(6907, 9216) == 6907 // 4 * 1056 * 2


def test_newer_logs_truncate_a_double() -> None:
    layout = qwen38(tensor=8)
    concurrency = layout.concurrency(1407 * layout.block_bytes_per_rank, 1320)
    assert concurrency * 1320 == 371_448
    # As a double, 1407 / 5 x 1320 is a little less.
    assert layout.logged_tokens(1407, 1320) == 371_447
