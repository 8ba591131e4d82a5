"""Sizing formulas: their values, their explanations, and what is not a formula."""

from __future__ import annotations

import pytest

from generator.errors import InvalidInput
from generator.spec.sizing import Term, evaluate

TERMS = {
    "isl": Term(value=8192, text="8192"),
    "concurrency": Term(value=256, text="256"),
    "ranks": Term(value=4, text="4 DP"),
    "mtp": Term(value=3, text="3 MTP"),
    "max_num_seqs": Term(value=80, text="80"),
    "headroom_sequences": Term(value=16, text="16"),
}


@pytest.mark.parametrize(
    ("formula", "value", "how"),
    [
        ("ceil(concurrency / ranks) + headroom_sequences", 80, "ceil(256 / 4 DP) + 16"),
        ("max_num_seqs * (1 + mtp)", 320, "80 * (1 + 3 MTP)"),
        ("2 * isl", 16384, "2 * 8192"),
        ("max(ceil(concurrency/ranks), 3)*2", 128, "max(ceil(256 / 4 DP), 3) * 2"),
        ("ceil(isl / (ranks * 2))", 1024, "ceil(8192 / (4 DP * 2))"),
        ("isl - (concurrency - ranks)", 7940, "8192 - (256 - 4 DP)"),
        ("isl - concurrency - ranks", 7932, "8192 - 256 - 4 DP"),
        ("floor(7 / 2)", 3, "floor(7 / 2)"),
        ("min(isl, 512)", 512, "min(8192, 512)"),
        ("32", 32, "32"),
        (32, 32, ""),
    ],
)
def test_formula(formula: int | str, value: int, how: str) -> None:
    derived = evaluate(formula, TERMS)
    assert (derived.value, derived.how) == (value, how)


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("isl / 2", "cannot use 'isl / 2'"),
        ("ceil(isl)", "ceil and floor take one division"),
        ("ceil(isl / 0)", "divides by 0"),
        ("2 ** 64", "cannot use '2 ** 64'"),
        ("mpt * 2", "unknown name 'mpt'; known here: concurrency, headroom_sequences, isl"),
        ("1 - 5", "gives -4; a size must be at least 1"),
        ("__import__('os')", "cannot use"),
        ("isl.real", "cannot use 'isl.real'"),
        ("True", "cannot use 'True'"),
        ("1.5 * isl", "cannot use '1.5'"),
        ("isl if isl else 1", "cannot use"),
        ("2 * ", "not a formula"),
        ("\0", "not a formula"),
        ("(" * 150 + "1", "not a formula"),
        ("1 + " * 100 + "1", "longer than 200 characters"),
    ],
)
def test_not_a_formula(formula: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as error:
        evaluate(formula, TERMS)
    assert reason in error.value.problems[0].message
