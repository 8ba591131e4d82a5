from __future__ import annotations

from dataclasses import replace

import pytest

from generator.architecture import DenseMlp, GroupedQueryAttention, Layer
from generator.errors import InvalidInput
from generator.kv_cache.kv_cache import KvCacheOptions, plan_kv_cache
from generator.kv_cache.layer_groups import LayerKind, group_layers, group_size, stage_layers
from tests.recorded_models import QWEN38, qwen38


def test_layers_that_are_not_modelled_are_refused_by_name() -> None:
    window = replace(QWEN38, layers=(*QWEN38.layers, Layer(mixer=DenseMlp(intermediate_size=1))))  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"layers\.92: layer type DenseMlp of model Qwen3.8-2.4T is not modelled"
    ):
        plan_kv_cache(window, KvCacheOptions())


def test_layers_of_two_shapes_are_refused() -> None:
    narrow = GroupedQueryAttention(num_attention_heads=64, num_key_value_heads=4, head_dim=64)
    mixed = replace(QWEN38, layers=(*QWEN38.layers, Layer(mixer=narrow)))
    with pytest.raises(InvalidInput, match=r"layers\.92: layer whose attention differs in shape"):
        plan_kv_cache(mixed, KvCacheOptions())


def test_a_model_without_full_attention_is_refused() -> None:
    with pytest.raises(InvalidInput, match="without full attention is not modelled"):
        plan_kv_cache(replace(QWEN38, layers=QWEN38.layers[:3]), KvCacheOptions())


def test_groups_name_the_layers_they_hold() -> None:
    layout = qwen38(tensor=4, mtp=3)
    recurrent, *_, attention = layout.groups
    assert recurrent.kind is LayerKind.RECURRENT
    assert recurrent.positions[:3] == (0, 4, 8)
    assert attention.kind is LayerKind.ATTENTION
    assert attention.positions[-2:] == (91, 92)


@pytest.mark.parametrize(
    ("attention", "recurrent", "size"),
    [
        (23, 69, 23),
        (24, 69, 24),
        (13, 12, 13),  # less than half as many again: one padded group
        (2, 3, 2),  # exactly half as many again
        (9, 4, 4),
        (80, 0, 80),
    ],
)
def test_a_group_has_room_for_so_many_layers(attention: int, recurrent: int, size: int) -> None:
    assert group_size(attention, recurrent) == size


@pytest.mark.parametrize(
    ("layers", "stages", "counts"),
    [
        (92, 8, (11, 11, 11, 12, 12, 12, 12, 11)),
        (92, 6, (15, 15, 15, 16, 16, 15)),
        (92, 2, (46, 46)),
        (61, 2, (31, 30)),
        (7, 4, (2, 2, 2, 1)),
    ],
)
def test_layers_that_do_not_divide_go_before_the_last_stage(
    layers: int, stages: int, counts: tuple[int, ...]
) -> None:
    assert stage_layers(layers, stages) == counts


def test_draft_layers_run_on_the_last_stage() -> None:
    (group,) = group_layers([LayerKind.ATTENTION] * 5, model_layers=4, pipeline=2)
    assert group.layers_by_stage == (2, 3)
