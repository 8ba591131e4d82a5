"""Small recipes of both layouts, and what they become on the way to a cluster."""

from __future__ import annotations

import copy
from typing import Any

from generator.documents import Document, parse_document
from generator.sweep.planning import Placement, PlannedJob, planned_job
from generator.sweep.swept_recipe import SweptRecipe, swept_recipe

V2 = """\
schema: 2
name: tiny-1p1d
slurm: {time_limit: '1:00:00'}
model: {path: 'hf:org/model', container: image, precision: NVFP4}
resources: {gpu_type: gb300, gpus_per_node: 4}
frontend: {type: dynamo, enable_multiple_frontends: false}
engine: {type: vllm, connector: null}
roles:
  prefill: {nodes: 2, workers: 1, gpus: 8, args: {tensor-parallel-size: 8}}
  decode: {nodes: 2, workers: 1, gpus: 8, args: {tensor-parallel-size: 8}}
benchmark: {type: sa-bench, isl: 8192, osl: 1024, concurrencies: 64x128, req_rate: inf}
"""

V1 = """\
name: tiny-1p1d
slurm: {time_limit: '1:00:00'}
model: {path: 'hf:org/model', container: image, precision: NVFP4}
resources:
  gpu_type: gb300
  gpus_per_node: 4
  prefill_nodes: 2
  prefill_workers: 1
  decode_nodes: 2
  decode_workers: 1
backend:
  type: vllm
  vllm_config:
    prefill: {tensor-parallel-size: 8}
    decode: {tensor-parallel-size: 8}
benchmark: {type: sa-bench, isl: 8192, osl: 1024, concurrencies: 64x128, req_rate: inf}
"""


def edited(text: str, *edits: tuple[str, str]) -> str:
    """The text with each first part replaced by the second; every part must be there once."""
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def document(text: str = V2, source: str = "tiny.yaml") -> Document:
    return parse_document(text, source)


def data(text: str = V2) -> dict[str, Any]:
    """The recipe as plain data of its own."""
    plain: dict[str, Any] = copy.deepcopy(document(text).data)
    return plain


def recipe(*edits: tuple[str, str], text: str = V2) -> SweptRecipe:
    return swept_recipe(document(edited(text, *edits)))


def numbered(number: int, *, nodes: int = 4, loads: str = "64") -> SweptRecipe:
    """One of many recipes that differ by name alone, of an even number of nodes."""
    half = nodes // 2
    return recipe(
        ("tiny-1p1d", f"tiny-{number}"),
        ("prefill: {nodes: 2", f"prefill: {{nodes: {half}"),
        ("decode: {nodes: 2", f"decode: {{nodes: {nodes - half}"),
        ("64x128", f"'{loads}'"),
    )


def job(swept: SweptRecipe, placement: Placement | None = None) -> PlannedJob:
    points = tuple(point.id for point in swept.points)
    return planned_job(swept, points, "never submitted", placement or Placement())
