"""Which prefill and decode engines hand over KV cache, and which block size they then share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.architecture import ModelArchitecture
from generator.derivation.pairing import (
    PairingProblem,
    agree_on_block_tokens,
    pairing_problems,
    require_pairing,
)
from generator.engine.options import EngineOptions
from generator.errors import InvalidInput
from generator.facts import PdBlockRule
from generator.parallel import parse_layout
from tests.recorded_models import QWEN38, attention_only, latent_attention, qwen38

BASE = EngineOptions(layout=parse_layout("TEP8"), kv_cache_dtype="fp8")


def problems(
    prefill: dict[str, Any], decode: dict[str, Any], model: ModelArchitecture = QWEN38
) -> list[PairingProblem]:
    options = []
    for flags in (prefill, decode):
        layout = parse_layout(flags.pop("layout", "TEP8"))
        options.append(replace(BASE, layout=layout, **flags))
    return list(pairing_problems(model, *options))


@pytest.mark.parametrize(
    ("prefill", "decode"),
    [
        ("TEP8", "TEP8"),
        ("TP2DP4+EP", "TEP8"),
        ("TEP8", "TP2DP4+EP"),
        ("TP2DP4+EP", "TP4DP4+EP"),
        ("DEP2", "DEP8"),
        ("TP1", "TP8"),
    ],
)
def test_layouts_that_pair(prefill: str, decode: str) -> None:
    assert problems({"layout": prefill}, {"layout": decode}) == []


@pytest.mark.parametrize(
    ("prefill", "decode", "message"),
    [
        pytest.param(
            {"num_speculative_tokens": 1},
            {"num_speculative_tokens": 3},
            "prefill drafts 1 tokens, decode 3, but the convolution state of GatedDeltaNet is as"
            " wide as the drafts",
            id="drafts",
        ),
        pytest.param(
            {"num_speculative_tokens": 3},
            {},
            "prefill drafts 3 tokens, decode 0, but the convolution state of GatedDeltaNet is as"
            " wide as the drafts",
            id="drafts of prefill alone",
        ),
        pytest.param(
            {"kv_cache_dtype": "bfloat16"},
            {},
            "prefill has kv-cache-dtype bfloat16, decode has fp8",
            id="KV dtype",
        ),
        pytest.param(
            {"kv_cache_dtype": "fp8_e4m3"},
            {},
            "prefill has kv-cache-dtype fp8_e4m3, decode has fp8",
            id="two words for one dtype",
        ),
        pytest.param(
            {},
            {"mamba_ssm_cache_dtype": "float32"},
            "prefill has mamba-ssm-cache-dtype auto, decode has float32",
            id="state dtype",
        ),
        pytest.param(
            {"mamba_cache_dtype": "float32"},
            {},
            "prefill has mamba-cache-dtype float32, decode has auto",
            id="convolution dtype",
        ),
        pytest.param(
            {"layout": "TP6"},
            {"layout": "TP4"},
            "prefill TP6 and decode TP4: one tensor parallel size must divide the other",
            id="TP that does not divide",
        ),
        pytest.param(
            {"layout": "TP4"},
            {"layout": "TP6"},
            "prefill TP4 and decode TP6: one tensor parallel size must divide the other",
            id="TP that does not divide, the other way",
        ),
        pytest.param(
            {"layout": "TP4PP2"},
            {},
            "pipeline parallelism of a hybrid model is not supported on the transfer path",
            id="pipeline stages",
        ),
        pytest.param(
            {},
            {"hybrid_kv_cache_manager_disabled": True},
            "decode disables the hybrid KV cache manager, which this model needs",
            id="hybrid manager",
        ),
    ],
)
def test_hybrid_roles_that_cannot_pair(
    prefill: dict[str, Any], decode: dict[str, Any], message: str
) -> None:
    (problem,) = problems(prefill, decode)
    assert problem.message == message
    assert problem.is_fatal
    assert problem.hint


def test_every_reason_at_once() -> None:
    found = problems(
        {"layout": "TP4PP2", "num_speculative_tokens": 1, "kv_cache_dtype": "auto"},
        {"layout": "TP6", "hybrid_kv_cache_manager_disabled": True},
    )
    assert [problem.message.split()[0] for problem in found] == [
        "prefill",
        "prefill",
        "prefill",
        "pipeline",
        "decode",
    ]
    with pytest.raises(InvalidInput) as error:
        require_pairing(found)
    assert [str(problem).split(":")[0] for problem in error.value.problems] == (
        ["roles cannot pair"] * 5
    )


@pytest.mark.parametrize(
    "model", [attention_only(), latent_attention()], ids=lambda each: each.name
)
def test_attention_only_models_may_draft_differently(model: ModelArchitecture) -> None:
    """There is no convolution state to be as wide as the drafts; shipped recipes do so."""
    (problem,) = problems({}, {"num_speculative_tokens": 3}, model)
    assert problem.message == "prefill drafts 0 tokens, decode 3"
    assert not problem.is_fatal
    require_pairing([problem])


@pytest.mark.parametrize(
    "model", [attention_only(), latent_attention()], ids=lambda each: each.name
)
def test_attention_only_models_may_have_stages_and_no_hybrid_manager(
    model: ModelArchitecture,
) -> None:
    flags: dict[str, Any] = {"layout": "TP4PP2", "hybrid_kv_cache_manager_disabled": True}
    assert problems(dict(flags), dict(flags), model) == []


# --- block size -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefill_tp", "decode_tp", "mtp", "block_tokens"),
    [(8, 8, 3, None), (4, 8, 3, 2176), (2, 8, 3, 2176), (2, 4, 3, None), (2, 4, 0, None)],
    ids=["TP8-TP8", "TP4-TP8", "TP2-TP8", "TP2-TP4", "TP2-TP4 without drafts"],
)
def test_block_size_of_the_published_pairs(
    prefill_tp: int, decode_tp: int, mtp: int, block_tokens: int | None
) -> None:
    prefill, decode = (qwen38(tensor=tensor, mtp=mtp) for tensor in (prefill_tp, decode_tp))
    equal = PdBlockRule.EQUAL_KERNEL_BLOCKS
    assert agree_on_block_tokens(prefill, decode, equal) == block_tokens
    assert agree_on_block_tokens(decode, prefill, equal) == block_tokens


@pytest.mark.parametrize(
    ("prefill_tp", "decode_tp", "block_tokens"), [(8, 4, None), (8, 2, None), (4, 8, 2176)]
)
def test_later_releases_take_a_multiple_on_decode(
    prefill_tp: int, decode_tp: int, block_tokens: int | None
) -> None:
    prefill, decode = (qwen38(tensor=tensor, mtp=3) for tensor in (prefill_tp, decode_tp))
    rule = PdBlockRule.DECODE_MULTIPLE_OF_PREFILL
    assert agree_on_block_tokens(prefill, decode, rule) == block_tokens


@pytest.mark.parametrize("mtp", [0, 1, 3, 5])
@pytest.mark.parametrize(("one", "other"), [(1, 2), (1, 8), (2, 8), (4, 8), (8, 16)])
def test_forced_block_size_is_one_that_both_roles_keep(one: int, other: int, mtp: int) -> None:
    """The engine raises a block that does not hold its states; the agreed one it does not."""
    forced = agree_on_block_tokens(
        qwen38(tensor=one, mtp=mtp),
        qwen38(tensor=other, mtp=mtp),
        PdBlockRule.EQUAL_KERNEL_BLOCKS,
    )
    for tensor in (one, other):
        layout = qwen38(tensor=tensor, mtp=mtp, block_size=forced)
        expected = forced or qwen38(tensor=tensor, mtp=mtp).block_tokens
        assert layout.block_tokens == expected
