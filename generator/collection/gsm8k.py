"""Accuracy runs: ``gsm8k_run<i>.json``, one for each repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from generator.collection.unusable import Figures, Unusable, read_json_object

BENCHMARK = "gsm8k"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRun:
    """One repetition: the share of questions answered right, and how many were asked."""

    file: Path
    score: float
    questions: int


def read_gsm8k(path: Path) -> AccuracyRun:
    """The run in a file; raises Unusable for another file, a share above 1, or no questions."""
    figures = Figures(read_json_object(path), "gsm8k result")
    figures.demand_keys("accuracy", "num_questions")
    score, questions = figures.number("accuracy"), figures.count("num_questions")
    if score > 1:
        raise Unusable(f"accuracy is {score:g}, not a share of 1")
    if not questions:
        raise Unusable("it asked no question")
    return AccuracyRun(file=path, score=score, questions=questions)


def mean_score(runs: Sequence[AccuracyRun]) -> float:
    """The share over all repetitions, each question counted once for every time it was asked.

    Exact until the end: a score that was divided again could fall below the threshold it reaches.
    """
    right = sum(Fraction(each.score) * each.questions for each in runs)
    return float(right / sum(each.questions for each in runs))
