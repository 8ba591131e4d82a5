"""What ``pdrecipe status`` says beside the points."""

from __future__ import annotations

import pytest

from generator.cluster.protocol import NodeProblem
from generator.sweep.history import history
from generator.sweep.looking import Look
from generator.sweep.observation import Observation
from generator.sweep.status_view import advice


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        ("drained", "Duplicate jobid", "node n1 is drained: Duplicate jobid; an admin resumes it"),
        ("idle*", "", "node n1 is idle*: Slurm does not reach it"),
    ],
)
def test_nodes_in_trouble(state: str, reason: str, said: str) -> None:
    nothing = Look(
        history=history([]), observation=Observation(results={}), statuses=(), notices=()
    )
    assert advice(nothing, [NodeProblem(node="n1", state=state, reason=reason)], "s") == [said]
