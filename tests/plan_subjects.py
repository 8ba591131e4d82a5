"""Subjects of plans that are small enough to look at every deployment of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from generator.enumeration.base_spec import subject_of_model, subject_of_spec
from generator.enumeration.subject import ModelQuestion, Subject
from generator.planning.phases import Costs
from generator.planning.plan_costs import chosen_costs
from generator.workload import Workload

REPOSITORY = Path(__file__).parent.parent
CONFIGS = REPOSITORY / "tests/data/hf_configs"
SPEC = REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
VERSION = "0.26.0"


def small_subject(
    model: str, *, nodes: int, gpu: str = "gb300", isl: int = 8192, osl: int = 1024
) -> Subject:
    """A model on a few nodes."""
    return subject_of_model(
        ModelQuestion(
            model=CONFIGS / model,
            gpu=gpu,
            nodes=nodes,
            workload=Workload(isl=isl, osl=osl),
            engine_version=VERSION,
        )
    )


@cache
def article_subject() -> Subject:
    """The rack of the published recipes."""
    return subject_of_spec(SPEC)


@cache
def costs() -> Costs:
    """The factors of the public points."""
    return chosen_costs("gb300", VERSION)[0]
