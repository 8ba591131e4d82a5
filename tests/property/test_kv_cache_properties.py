from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from generator.architecture import (
    FullAttention,
    ModelArchitecture,
    RecurrentMixer,
)
from generator.kv_cache.block_size import RecurrentCacheMode
from generator.kv_cache.kv_cache import KvCacheLayout, KvCacheOptions, plan_kv_cache
from generator.kv_cache.layer_groups import LayerKind, group_size
from generator.kv_cache.mean_length import LengthRange, mean_blocks
from tests.property.strategies import engines, tensor_sizes

Engine = tuple[ModelArchitecture, KvCacheOptions]

budgets = st.integers(0, 1 << 40)
lengths = st.integers(1, 300_000)


@given(engine=engines(), data=st.data())
def test_bytes_of_a_rank_never_grow_with_tensor_parallelism(
    engine: Engine, data: st.DataObject
) -> None:
    """Tokens, states and pages never grow; whole requests may, by rounding.

    More ranks can mean a smaller block, and the smaller block can round a length up further. So a
    request may grow, but by less than one block of each group.
    """
    architecture, options = engine
    sizes = [size for size in tensor_sizes(architecture) if size >= options.tensor]
    fewer = plan_kv_cache(architecture, replace(options, decode_context=1))
    more = plan_kv_cache(
        architecture, replace(options, decode_context=1, tensor=data.draw(st.sampled_from(sizes)))
    )
    assert more.attention_bytes_per_token_per_layer <= fewer.attention_bytes_per_token_per_layer
    assert more.state.conv_bytes_per_rank <= fewer.state.conv_bytes_per_rank
    assert more.state.ssm_bytes_per_rank <= fewer.state.ssm_bytes_per_rank
    assert more.page_bytes_per_rank <= fewer.page_bytes_per_rank
    tokens = data.draw(lengths)
    rounding = len(more.groups) * more.block_bytes_per_rank
    assert more.request_bytes_per_rank(tokens) < fewer.request_bytes_per_rank(tokens) + rounding


@given(engine=engines(), budget=budgets)
def test_the_tokens_that_fit_stay_within_the_budget_and_one_more_block_does_not(
    engine: Engine, budget: int
) -> None:
    layout = plan_kv_cache(*engine)
    tokens = layout.longest_request_tokens(budget)
    assert tokens % layout.block_tokens == 0
    assert tokens == 0 or layout.request_bytes_per_rank(tokens) <= budget
    assert layout.request_bytes_per_rank(tokens + 1) > budget


@given(engine=engines(), budget=budgets, tokens=lengths)
def test_the_requests_that_fit_stay_within_the_budget_and_one_more_does_not(
    engine: Engine, budget: int, tokens: int
) -> None:
    layout = plan_kv_cache(*engine)
    requests = int(layout.concurrency(budget, tokens))
    assert layout.bytes_for_requests(requests, tokens) <= budget
    assert layout.bytes_for_requests(requests + 1, tokens) > budget


@given(engine=engines(), budget=budgets, extra=budgets, tokens=lengths)
def test_capacity_never_shrinks_with_memory(
    engine: Engine, budget: int, extra: int, tokens: int
) -> None:
    layout = plan_kv_cache(*engine)
    larger = budget + extra
    assert layout.num_blocks(budget) <= layout.num_blocks(larger)
    assert layout.concurrency(budget, tokens) <= layout.concurrency(larger, tokens)
    assert layout.longest_request_tokens(budget) <= layout.longest_request_tokens(larger)


@given(engine=engines(), budget=budgets, tokens=lengths, extra=lengths)
def test_capacity_never_grows_with_length(
    engine: Engine, budget: int, tokens: int, extra: int
) -> None:
    layout = plan_kv_cache(*engine)
    assert layout.concurrency(budget, tokens + extra) <= layout.concurrency(budget, tokens)


def _assert_never_serves_more(
    costly: KvCacheLayout, cheap: KvCacheLayout, blocks: int, blocks_per_rank: int
) -> None:
    """Compare where the cheap layout rounds nothing: whole blocks of tokens, whole blocks of bytes.

    Elsewhere the costly layout can come out ahead, in vLLM itself: its larger block may happen to
    divide a length or a budget better. Qwen3.8 at TP4 with 83.00 GiB serves 447.9 requests of 9216
    tokens with blocks of 2112 tokens, which round them up to 10560, and 469.1 with blocks of 2304,
    which divide them (both are vLLM's figures, in vllm_kv_cache_edge_cases.json).
    """
    tokens = blocks_per_rank * cheap.block_tokens * cheap.decode_context
    assert costly.request_bytes_per_rank(tokens) >= cheap.request_bytes_per_rank(tokens)
    budget = blocks * cheap.block_bytes_per_rank
    assert costly.concurrency(budget, tokens) <= cheap.concurrency(budget, tokens)


@given(
    engine=engines(is_hybrid=True),
    extra=st.integers(1, 4),
    blocks=st.integers(0, 10_000),
    blocks_per_rank=st.integers(1, 100),
)
def test_capacity_never_grows_with_speculative_tokens(
    engine: Engine, extra: int, blocks: int, blocks_per_rank: int
) -> None:
    """Each speculative token widens the state and adds one; see ``_assert_never_serves_more``.

    The first of them also brings the draft layers, which change the groups. Where all states are
    kept that can pay: 4 attention and 9 recurrent layers make four groups with room for 16 layers,
    5 and 9 make three with room for 15. So that step is compared only in the other modes.
    """
    architecture, options = engine
    cheap = plan_kv_cache(architecture, options)
    speculative = options.num_speculative_tokens
    assume(speculative > 0 or cheap.mode is not RecurrentCacheMode.ALL)
    assume(speculative > 0 or options.pipeline == 1)
    more = replace(options, num_speculative_tokens=speculative + extra)
    _assert_never_serves_more(plan_kv_cache(architecture, more), cheap, blocks, blocks_per_rank)


@given(
    engine=engines(is_hybrid=True),
    blocks=st.integers(0, 10_000),
    blocks_per_rank=st.integers(1, 100),
)
def test_capacity_never_grows_with_the_width_of_states(
    engine: Engine, blocks: int, blocks_per_rank: int
) -> None:
    """A wider state makes larger blocks; see ``_assert_never_serves_more``."""
    architecture, options = engine
    narrow, wide = (
        plan_kv_cache(architecture, replace(options, mamba_ssm_cache_dtype=dtype))
        for dtype in ("bfloat16", "float32")
    )
    assert wide.block_tokens >= narrow.block_tokens
    _assert_never_serves_more(wide, narrow, blocks, blocks_per_rank)


@given(engine=engines())
def test_groups_hold_every_caching_layer_once(engine: Engine) -> None:
    architecture, options = engine
    layout = plan_kv_cache(architecture, options)
    drafts = architecture.draft_layers if options.num_speculative_tokens else ()
    expected = {
        position: LayerKind.ATTENTION
        if isinstance(layer.mixer, FullAttention)
        else LayerKind.RECURRENT
        for position, layer in enumerate((*architecture.layers, *drafts))
        if isinstance(layer.mixer, FullAttention | RecurrentMixer)
    }
    held = [(position, group.kind) for group in layout.groups for position in group.positions]
    assert len(held) == len(expected)
    assert dict(held) == expected


@given(engine=engines())
def test_groups_of_a_kind_differ_by_at_most_one_layer(engine: Engine) -> None:
    layout = plan_kv_cache(*engine)
    counts = Counter[LayerKind]()
    for group in layout.groups:
        counts[group.kind] += len(group.positions)
    room = group_size(counts[LayerKind.ATTENTION], counts[LayerKind.RECURRENT])
    for kind in counts:
        sizes = [len(group.positions) for group in layout.groups if group.kind is kind]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= room
        assert sum(sizes) > (len(sizes) - 1) * room


@given(engine=engines())
def test_pipeline_stages_share_out_each_group(engine: Engine) -> None:
    architecture, options = engine
    layout = plan_kv_cache(architecture, options)
    for group in layout.groups:
        assert len(group.layers_by_stage) == options.pipeline
        assert sum(group.layers_by_stage) == len(group.positions)
    for stage, layers in enumerate(layout.layers_per_block_by_stage):
        assert layers == max(group.layers_by_stage[stage] for group in layout.groups)


@given(engine=engines(), budget=budgets)
def test_equal_stages_have_the_blocks_of_the_widest(engine: Engine, budget: int) -> None:
    layout = plan_kv_cache(*engine)
    stages = len(layout.layers_per_block_by_stage)
    assert layout.num_blocks_of_stages((budget,) * stages) == layout.num_blocks(budget)


@given(engine=engines())
def test_a_page_holds_a_state_with_less_than_one_unit_to_spare(engine: Engine) -> None:
    architecture, options = engine
    layout = plan_kv_cache(architecture, options)
    page, state = layout.page_bytes_per_rank, layout.state.bytes_per_rank
    assert page == layout.block_tokens * layout.attention_bytes_per_token_per_layer
    assert page >= state
    assert layout.block_tokens >= (options.block_size or 0)
    if state:
        assert layout.padding_fraction == Fraction(page, state) - 1


ranges = st.builds(
    lambda shortest, spread: LengthRange(
        shortest_tokens=shortest, longest_tokens=shortest + spread
    ),
    shortest=st.integers(1, 60),
    spread=st.integers(0, 25),
)


@given(prompt=ranges, output=ranges, block_tokens=st.integers(1, 50))
def test_the_closed_form_of_mean_blocks_is_the_mean(
    prompt: LengthRange, output: LengthRange, block_tokens: int
) -> None:
    blocks = [
        -(-(mine + theirs) // block_tokens)
        for mine, theirs in product(
            range(prompt.shortest_tokens, prompt.longest_tokens + 1),
            range(output.shortest_tokens, output.longest_tokens + 1),
        )
    ]
    assert mean_blocks(prompt, output, block_tokens) == Fraction(sum(blocks), len(blocks))
