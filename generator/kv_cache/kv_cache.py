"""The KV cache as vLLM lays it out: blocks of one page size that all layer groups share."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from generator.architecture import ModelArchitecture
from generator.errors import InvalidInput, Problem
from generator.kv_cache.block_size import (
    BLOCK_UNIT_TOKENS,
    RecurrentCacheMode,
    RecurrentState,
    aligned_block_tokens,
    alignment_unit_tokens,
    attention_bytes_per_token_per_rank,
    recurrent_cache_mode,
    recurrent_state,
)
from generator.kv_cache.layer_groups import (
    LayerCensus,
    LayerGroup,
    LayerKind,
    group_layers,
    take_census,
)
from generator.kv_cache.mean_length import LengthRange, mean_blocks
from generator.kv_cache.options import CacheDtypes, KvCacheOptions, cache_dtypes, option_problems
from generator.units import ceil_div

__all__ = [
    "KvCacheLayout",
    "KvCacheOptions",
    "align_mode_problem",
    "plan_kv_cache",
    "tokens_of_uniform_layers",
    "whole_model_concurrency",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheLayout:
    """How one rank's KV cache is cut into blocks, and what fits a budget of bytes.

    Budgets are the KV-cache bytes of one rank. Under pipeline parallelism a budget is every
    stage's, and the widest stage binds. Requests are one data-parallel rank's: an endpoint of DP
    ranks serves DP times as many. Formulas: vLLM 0.26's KV-cache sizing.
    """

    block_tokens: int
    page_bytes_per_rank: int
    attention_bytes_per_token_per_layer: int
    state: RecurrentState
    kv_cache_dtype: str
    mamba_ssm_cache_dtype: str
    mode: RecurrentCacheMode
    groups: tuple[LayerGroup, ...]
    layers_per_block_by_stage: tuple[int, ...]
    attention_groups: int
    recurrent_groups: int
    attention_layers: int
    num_speculative_tokens: int
    decode_context: int

    @property
    def layers_per_block(self) -> int:
        """Layers of the widest group: one block id is one page in each of so many tensors."""
        return max(self.layers_per_block_by_stage)

    @property
    def block_bytes_per_rank(self) -> int:
        """Bytes one block id takes on the rank (of the widest stage)."""
        return self.page_bytes_per_rank * self.layers_per_block

    @property
    def padding_fraction(self) -> Fraction:
        """What padding adds to a recurrent state: page / state - 1; 0 without states."""
        state = self.state.bytes_per_rank
        return Fraction(self.page_bytes_per_rank - state, state) if state else Fraction(0)

    @property
    def attention_bytes_per_token_per_rank(self) -> int:
        """Bytes one more token costs in all attention layers, block rounding aside."""
        return self.attention_bytes_per_token_per_layer * self.attention_layers

    def num_blocks(self, kv_cache_bytes_per_rank: int) -> int:
        """Blocks in a budget; none in a negative one."""
        return max(0, kv_cache_bytes_per_rank) // self.block_bytes_per_rank

    def num_blocks_of_stages(self, kv_cache_bytes_by_stage: tuple[int, ...]) -> int:
        """Blocks where pipeline stages have different budgets: the least of any stage."""
        return min(
            max(0, budget) // (self.page_bytes_per_rank * layers)
            for budget, layers in zip(
                kv_cache_bytes_by_stage, self.layers_per_block_by_stage, strict=True
            )
            if layers
        )

    def blocks_per_request(self, tokens: int) -> int:
        """Blocks vLLM counts for one request of so many tokens, prompt and output."""
        return self.attention_blocks(tokens) + self.recurrent_blocks(tokens)

    def attention_blocks(self, tokens: int) -> int:
        """Blocks of all attention groups; context ranks share a request's tokens."""
        return self.attention_groups * ceil_div(tokens, self.block_tokens * self.decode_context)

    def recurrent_blocks(self, tokens: int) -> int:
        """Blocks of all recurrent groups, which context parallelism does not share out."""
        kept = self._constant_states
        if self.mode is RecurrentCacheMode.ALL:
            kept += ceil_div(tokens, self.block_tokens)
        return self.recurrent_groups * kept

    @property
    def _constant_states(self) -> int:
        """States of one recurrent group that do not depend on the length of the request.

        One runs, each speculative token may keep one more, and ``align`` keeps the last boundary.
        ``all`` keeps one for each block instead of the running one.
        """
        running = {RecurrentCacheMode.NONE: 1, RecurrentCacheMode.ALIGN: 2}
        return running.get(self.mode, 0) + self.num_speculative_tokens

    def request_bytes_per_rank(self, tokens: int) -> int:
        """Bytes of one request of so many tokens: what vLLM demands before it starts."""
        return self.blocks_per_request(tokens) * self.block_bytes_per_rank

    def bytes_for_requests(self, requests: int, tokens: int) -> int:
        """The least budget that holds so many requests of this length at once."""
        return requests * self.request_bytes_per_rank(tokens)

    def concurrency(self, kv_cache_bytes_per_rank: int, tokens: int) -> Fraction:
        """Requests of this length that fit, with the fraction vLLM logs."""
        return Fraction(self.num_blocks(kv_cache_bytes_per_rank), self.blocks_per_request(tokens))

    def mean_blocks_per_request(self, prompt: LengthRange, output: LengthRange) -> Fraction:
        """Blocks of a request whose prompt and output are drawn uniformly from ranges, on average.

        Every request counts at its full length, as in ``blocks_per_request``.
        """
        block = self.block_tokens
        states: Fraction | int = self._constant_states
        if self.mode is RecurrentCacheMode.ALL:
            states += mean_blocks(prompt, output, block)
        attention = mean_blocks(prompt, output, block * self.decode_context)
        return self.attention_groups * attention + self.recurrent_groups * states

    def concurrency_of_mean_length(
        self, kv_cache_bytes_per_rank: int, prompt: LengthRange, output: LengthRange
    ) -> Fraction:
        """Requests that fit in the long run when lengths vary: blocks / mean blocks."""
        blocks = self.num_blocks(kv_cache_bytes_per_rank)
        return blocks / self.mean_blocks_per_request(prompt, output)

    def longest_request_tokens(self, kv_cache_bytes_per_rank: int) -> int:
        """The longest request that fits alone, a whole number of blocks; 0 where none does."""
        blocks = self.num_blocks(kv_cache_bytes_per_rank)
        block = self.block_tokens
        # A request's blocks step up only past multiples of the block, so only those are tried;
        # it takes at least one block of each context rank for so many of them.
        most = blocks * self.decode_context
        return block * bisect_right(
            range(1, most + 1), blocks, key=lambda count: self.blocks_per_request(count * block)
        )

    def highest_max_num_seqs(self, kv_cache_bytes_per_rank: int, max_model_len: int) -> int | None:
        """The highest max-num-seqs vLLM starts with; None where memory sets no limit.

        Start-up demands room for one request of max_model_len and, to capture FULL graphs of a
        model with states, one block for each sequence. Far more than ``concurrency`` serves.
        """
        blocks = self.num_blocks(kv_cache_bytes_per_rank)
        if blocks < self.blocks_per_request(max_model_len):
            return 0
        return blocks if self.recurrent_groups else None

    def logged_tokens(self, num_blocks: int, max_model_len: int) -> int:
        """The "GPU KV cache size" newer vLLM logs: concurrency x max-model-len.

        The engine multiplies doubles and truncates; so does this, to print the same digits.
        """
        return int(num_blocks / self.blocks_per_request(max_model_len) * max_model_len)

    def logged_tokens_until_0_20(self, num_blocks: int, max_model_len: int) -> int:
        """The "GPU KV cache size" vLLM logged up to about 0.20: blocks of one group x block.

        A recurrent group that caches no prefixes has blocks of max-model-len, and the smallest
        block counted.
        """
        block = self.block_tokens
        if self.recurrent_groups and self.mode is RecurrentCacheMode.NONE:
            block = min(block, max_model_len)
        return num_blocks // len(self.groups) * block * self.decode_context


def plan_kv_cache(architecture: ModelArchitecture, options: KvCacheOptions) -> KvCacheLayout:
    """The layout vLLM derives from a model and its flags, the same on all tensor ranks.

    Raises InvalidInput with every reason why vLLM would refuse to start, or why this model is not
    modelled.
    """
    with_drafts = options.num_speculative_tokens > 0
    census = take_census(architecture, with_draft_layers=with_drafts)
    problems = tuple(option_problems(architecture, census, options))
    if problems:
        raise InvalidInput(problems)
    groups = _groups(architecture, with_drafts=with_drafts, pipeline=options.pipeline)
    return _lay_out(census, options, cache_dtypes(architecture, options), groups)


@lru_cache(maxsize=128)  # layers do not change from one set of flags to the next
def _groups(
    architecture: ModelArchitecture, *, with_drafts: bool, pipeline: int
) -> tuple[LayerGroup, ...]:
    census = take_census(architecture, with_draft_layers=with_drafts)
    return group_layers(census.kinds, model_layers=len(architecture.layers), pipeline=pipeline)


def _lay_out(
    census: LayerCensus,
    options: KvCacheOptions,
    dtypes: CacheDtypes,
    groups: tuple[LayerGroup, ...],
) -> KvCacheLayout:
    mode = recurrent_cache_mode(
        census.recurrent,
        prefix_caching=options.prefix_caching,
        requested=options.mamba_cache_mode,
    )
    token_bytes = attention_bytes_per_token_per_rank(
        census.attention, tensor=options.tensor, kv_cache_dtype=dtypes.kv_cache
    )
    state = _state(census, options, dtypes)
    block_tokens = aligned_block_tokens(
        state_bytes_per_rank=state.bytes_per_rank,
        bytes_per_token_per_rank=token_bytes,
        unit_tokens=alignment_unit_tokens(
            census.recurrent,
            mode,
            kernel_block_tokens=options.kernel_block_tokens,
            block_size=options.block_size,
            mamba_block_size=options.mamba_block_size,
        ),
    )
    attention_groups = sum(group.kind is LayerKind.ATTENTION for group in groups)
    return KvCacheLayout(
        block_tokens=block_tokens,
        page_bytes_per_rank=block_tokens * token_bytes,
        attention_bytes_per_token_per_layer=token_bytes,
        state=state,
        kv_cache_dtype=dtypes.kv_cache,
        mamba_ssm_cache_dtype=dtypes.ssm,
        mode=mode,
        groups=groups,
        layers_per_block_by_stage=tuple(
            max(layers) for layers in zip(*(group.layers_by_stage for group in groups), strict=True)
        ),
        attention_groups=attention_groups,
        recurrent_groups=len(groups) - attention_groups,
        attention_layers=sum(
            len(group.positions) for group in groups if group.kind is LayerKind.ATTENTION
        ),
        num_speculative_tokens=options.num_speculative_tokens,
        decode_context=options.decode_context,
    )


def _state(census: LayerCensus, options: KvCacheOptions, dtypes: CacheDtypes) -> RecurrentState:
    if census.recurrent is None:
        return RecurrentState(conv_bytes_per_rank=0, ssm_bytes_per_rank=0)
    return recurrent_state(
        census.recurrent,
        tensor=options.tensor,
        num_speculative_tokens=options.num_speculative_tokens,
        conv_dtype=dtypes.conv,
        ssm_dtype=dtypes.ssm,
    )


def align_mode_problem(layout: KvCacheLayout, max_num_batched_tokens: int) -> Problem | None:
    """Why prefix caching cannot align states under this token budget; None where it can.

    vLLM 0.26 checks this only after it has loaded the weights.
    """
    if layout.mode is not RecurrentCacheMode.ALIGN or layout.block_tokens <= max_num_batched_tokens:
        return None
    return Problem(
        message=(
            f"prefix caching aligns states to blocks of {layout.block_tokens} tokens, more than"
            f" max-num-batched-tokens {max_num_batched_tokens}"
        ),
        hint=f"raise it to at least {layout.block_tokens}, or turn prefix caching off",
        path="max-num-batched-tokens",
    )


def tokens_of_uniform_layers(
    kv_cache_bytes_per_rank: int,
    bytes_per_token_per_rank: int,
    block_tokens: int = BLOCK_UNIT_TOKENS,
) -> int:
    """Tokens in a budget where every layer caches every token: whole blocks of them.

    ``bytes_per_token_per_rank`` covers all layers. This is all an attention-only model needs, so
    it also serves where only that figure is known.
    """
    block_bytes = bytes_per_token_per_rank * block_tokens
    return max(0, kv_cache_bytes_per_rank) // block_bytes * block_tokens


def whole_model_concurrency(
    architecture: ModelArchitecture,
    options: KvCacheOptions,
    kv_cache_bytes_per_rank: int,
    tokens: int,
) -> Fraction:
    """Requests by whole-model division: one rank's bytes / a request's bytes on one whole GPU.

    The simple column of the GB300 article: the divisor is the request at TP1 without speculative
    tokens or a forced block, whatever the layout. An accounting figure, not what vLLM admits.
    """
    whole = replace(
        options, tensor=1, pipeline=1, decode_context=1, num_speculative_tokens=0, block_size=None
    )
    request = _whole_model(architecture, whole).request_bytes_per_rank(tokens)
    return Fraction(kv_cache_bytes_per_rank, request)


@lru_cache(maxsize=128)  # one and the same for all layouts of a sweep
def _whole_model(architecture: ModelArchitecture, options: KvCacheOptions) -> KvCacheLayout:
    return plan_kv_cache(architecture, options)
