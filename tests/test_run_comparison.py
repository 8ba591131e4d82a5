"""Two sets of runs: what pairs, what is refused, and what a change is worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from generator.cli.main import main
from generator.errors import InvalidInput
from generator.pareto.axes import axis
from generator.results.contract import common_contract, contract_differences
from generator.results.point import Goodput, Invalidity, MeasuredPoint, Origin
from generator.results.point_file import write_points
from generator.results.repeats import repeated
from generator.run_comparison import pairs as run_pairs
from generator.run_comparison.comparison import RunComparison, Verdict, compare_runs
from generator.validation import schema
from tests.synthetic_points import CONTRACT, Deployment, synthetic_point

Y = axis("total_tokens_per_s_per_gpu")
TTFT = axis("ttft_ms")
BEFORE = Deployment(configuration="1xTEP8 + 1xTEP8 MTP3", factors={"mtp": "3"})
BEFORE_POINT = synthetic_point(BEFORE, 64)
OTHER = Deployment(configuration="1xTEP8 + 1xTEP8", digest="f" * 16, factors={"mtp": "0"})


def runs(deployment: Deployment, *shares: float, **changes: Any) -> list[MeasuredPoint]:
    """One point run as often as there are shares, each as much slower."""
    point = synthetic_point(deployment, 64, **changes)
    return [
        replace(point, duration_s=point.duration_s * share, run=f"{point.run}-{number}")
        for number, share in enumerate(shares)
    ]


def compared(before: list[MeasuredPoint], after: list[MeasuredPoint], *allow: str) -> RunComparison:
    return compare_runs(before, after, (Y, TTFT), allow)


def with_contract(point: MeasuredPoint, **keys: str) -> MeasuredPoint:
    return replace(
        point, contract=dict(point.contract) | {k.replace("__", "."): keys[k] for k in keys}
    )


VERDICTS = {
    "ranges apart, faster": ((1.0, 1.02), (0.90, 0.92), Verdict.BETTER),
    "ranges apart, slower": ((1.0, 1.02), (1.10, 1.12), Verdict.WORSE),
    "ranges overlap": ((1.0, 1.04), (1.02, 1.06), Verdict.WITHIN),
    "one side repeated, far": ((1.0, 1.02), (0.8,), Verdict.BETTER),
    "one side repeated, near": ((1.0,), (0.98, 1.02), Verdict.WITHIN),
    "never repeated": ((1.0,), (0.5,), Verdict.UNKNOWN),
    "one run of many among the others": ((1, 1, 1, 1, 0.1), (1 / 9, 1 / 9), Verdict.WITHIN),
    "ranges that touch": ((1.0, 1.04), (1.04, 1.06), Verdict.WITHIN),
}


@pytest.mark.parametrize(("before", "after", "verdict"), VERDICTS.values(), ids=VERDICTS)
def test_verdict(before: tuple[float, ...], after: tuple[float, ...], verdict: Verdict) -> None:
    answer = compared(runs(BEFORE, *before), runs(BEFORE, *after))
    assert answer.compared[0].changes[0].verdict == verdict


def test_less_is_better_for_latencies() -> None:
    slow = replace(BEFORE, prefill_ms=300, digest="1" * 16, factors={"mtp": "3", "chunk": "1"})
    answer = compared(runs(BEFORE, 1, 1), runs(slow, 1, 1))
    assert answer.compared[0].changes[1].verdict is Verdict.WORSE
    assert answer.compared[0].changes[1].ratio == pytest.approx(0.5)


def test_repeating_is_no_difference() -> None:
    assert compared(runs(BEFORE, 1), runs(BEFORE, 1.1)).varied == ()


def test_one_configuration_against_another_is_one_factor() -> None:
    """The configuration says its MTP, so that factor does not count beside it."""
    answer = compared(runs(BEFORE, 1), runs(OTHER, 1))
    assert [each.key for each in answer.varied] == ["configuration"]
    assert answer.compared[0].pair.configuration is None


def test_a_factor_that_each_concurrency_has_its_own_of_is_told_of_all_pairs() -> None:
    def ladder(digest: str, *sequences: int) -> list[MeasuredPoint]:
        return [
            synthetic_point(
                replace(BEFORE, digest=digest * 16, factors={"decode.max-num-seqs": str(each)}),
                64 * (1 + number),
            )
            for number, each in enumerate(sequences)
        ]

    (varied,) = compared(ladder("a", 128, 256), ladder("b", 192, 512)).varied
    assert run_pairs.sides(varied) == "decode.max-num-seqs: 128 or 256 in A, 192 or 512 in B"


def with_goodput(point: MeasuredPoint, ttft_ms: float | None) -> MeasuredPoint:
    if ttft_ms is None:
        return point
    goodput = Goodput(ttft_ms=ttft_ms, max_gap_ms=50, requests_per_s=2, tokens_per_s=4)
    return replace(point, goodput=goodput)


def test_goodput_of_other_limits_is_a_difference_where_goodput_is_asked_for() -> None:
    before, after = ([with_goodput(BEFORE_POINT, each)] for each in (250, 500))
    goodput = axis("goodput_tokens_per_s_per_gpu")
    (varied,) = compare_runs(before, after, (goodput, TTFT)).varied
    assert (
        run_pairs.sides(varied)
        == "goodput limits: TTFT 250 ms, gap 50 ms in A, TTFT 500 ms, gap 50 ms in B"
    )
    assert compare_runs(before, after, (TTFT,)).varied == ()
    assert compare_runs(before, [BEFORE_POINT], (goodput,)).varied == ()
    again = replace(after[0], run="again")
    with pytest.raises(InvalidInput, match="A mixes runs that differ in goodput limits"):
        compare_runs([*before, again], after, (goodput,))


def test_a_side_without_a_valid_point_is_named() -> None:
    invalid = replace(BEFORE_POINT, invalid=(Invalidity(code="no-output", message="none"),))
    with pytest.raises(InvalidInput, match="B has no valid point, of 1 in all"):
        compared([BEFORE_POINT], [invalid])
    with pytest.raises(InvalidInput, match="A has no valid point, of 0 in all"):
        compared([], [BEFORE_POINT])


Change = Callable[[MeasuredPoint], MeasuredPoint]
ONE_FACTOR: dict[str, tuple[Change, str]] = {
    "image": (lambda point: with_contract(point, container__image="new"), "container.image"),
    "a factor": (
        lambda point: replace(point, factors={"graphs": "full", **point.factors}),
        "graphs",
    ),
    "an unstated loop": (
        lambda point: replace(
            point, contract={key: CONTRACT[key] for key in CONTRACT if key != "load.loop"}
        ),
        "load.loop",
    ),
    "measured or not": (lambda point: replace(point, origin=Origin.REHEARSAL), "origin"),
    "a recipe without a word": (
        lambda point: replace(point, subject=replace(point.subject, digest="e" * 16)),
        "recipe",
    ),
}


@pytest.mark.parametrize(("change", "key"), ONE_FACTOR.values(), ids=ONE_FACTOR)
def test_one_factor_may_vary(change: Change, key: str) -> None:
    answer = compared(runs(BEFORE, 1), list(map(change, runs(BEFORE, 1))))
    assert [each.key for each in answer.varied] == [key]


def test_two_factors_are_refused_by_name_unless_one_is_allowed() -> None:
    after = [with_contract(point, container__image="new") for point in runs(OTHER, 1)]
    with pytest.raises(InvalidInput) as caught:
        compared(runs(BEFORE, 1), after)
    assert [each.message for each in caught.value.problems] == [
        "A and B differ in configuration: 1xTEP8 + 1xTEP8 MTP3 in A, 1xTEP8 + 1xTEP8 in B",
        "A and B differ in container.image: vllm/vllm-openai:nightly-a9a17e7 in A, new in B",
    ]
    assert "--allow container.image lets this one pass" in str(caught.value.problems[1])
    answer = compared(runs(BEFORE, 1), after, "container.image")
    assert [each.key for each in answer.varied] == ["configuration"]
    assert [each.key for each in answer.allowed] == ["container.image"]


def test_a_pattern_allows_many_keys_and_drafts_are_in_the_configuration() -> None:
    flags = {
        "decode.max-num-seqs": "80",
        "decode.block-size": "2176",
        "decode.speculative-config.num_speculative_tokens": "0",
    }
    after = [replace(point, factors={**point.factors, **flags}) for point in runs(OTHER, 1)]
    with pytest.raises(InvalidInput) as caught:
        compared(runs(BEFORE, 1), after)
    assert len(caught.value.problems) == 3
    answer = compared(runs(BEFORE, 1), after, "decode.*")
    assert [each.key for each in answer.varied] == ["configuration"]
    assert [each.key for each in answer.allowed] == ["decode.block-size", "decode.max-num-seqs"]


def sized(sequences: int, capture: int, batched: int, drafted: int = 3) -> dict[str, str]:
    """Scheduling limits of decode, as collect names them."""
    return {
        "decode.max-num-seqs": str(sequences),
        "decode.max-cudagraph-capture-size": str(capture),
        "decode.max-num-batched-tokens": str(batched),
        "decode.speculative-config.num-speculative-tokens": str(drafted),
    }


def blocks(prefill: str | None, decode: str | None) -> dict[str, str]:
    stated = {"prefill.block-size": prefill, "decode.block-size": decode}
    return {"prefill.x": "1", **{key: value for key, value in stated.items() if value}}


# Factors before and after, whether the configuration differs too; what varies, what follows.
CAPTURE, BATCHED = "decode.max-cudagraph-capture-size", "decode.max-num-batched-tokens"
SEQUENCES, PREFILL_BLOCK, DECODE_BLOCK = (
    "decode.max-num-seqs", "prefill.block-size", "decode.block-size",
)  # fmt: skip
CONSEQUENCES = {
    "more sequences": (
        sized(80, 320, 336), sized(96, 384, 400), BEFORE, [SEQUENCES], [CAPTURE, BATCHED],
    ),
    "a capture size of its own": (
        sized(80, 320, 336), sized(96, 320, 400), BEFORE, [SEQUENCES], [BATCHED],
    ),
    "a capture size that followed before only": (
        sized(80, 320, 336), sized(96, 512, 336), BEFORE, [CAPTURE, SEQUENCES], None,
    ),
    "without drafts": (
        sized(80, 320, 336), sized(80, 80, 96, 0), OTHER, ["configuration"], [CAPTURE, BATCHED],
    ),
    "the capture size alone": (sized(80, 320, 336), sized(80, 256, 336), BEFORE, [CAPTURE], []),
    "blocks of the pair": (
        blocks("2176", "2176"), blocks(None, None), OTHER, ["configuration"],
        [DECODE_BLOCK, PREFILL_BLOCK],
    ),
    "a block of one role": (
        blocks("2176", "2176"), blocks("2176", None), OTHER, ["configuration", DECODE_BLOCK], None,
    ),
    "blocks of the same layouts": (
        blocks("2176", "2176"), blocks(None, None), BEFORE, [DECODE_BLOCK, PREFILL_BLOCK], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "deployment", "varied", "follows"), CONSEQUENCES.values(), ids=CONSEQUENCES
)
def test_what_follows_from_the_factor_is_no_second_one(
    before: dict[str, str],
    after: dict[str, str],
    deployment: Deployment,
    varied: list[str],
    follows: list[str] | None,
) -> None:
    first = [replace(each, factors={**each.factors, **before}) for each in runs(BEFORE, 1)]
    second = [replace(each, factors={**each.factors, **after}) for each in runs(deployment, 1)]
    if follows is None:
        with pytest.raises(InvalidInput) as caught:
            compared(first, second)
        told = [problem.message.split()[5].rstrip(":") for problem in caught.value.problems]
        assert sorted(told) == sorted(varied)
        return
    answer = compared(first, second)
    assert [each.key for each in answer.varied] == varied
    assert [each.key for each in answer.consequences] == follows


def test_a_side_that_mixes_is_refused() -> None:
    first, second = runs(BEFORE, 1, 1)
    mixed = [first, with_contract(second, workload__isl="4096")]
    with pytest.raises(InvalidInput, match=r"A mixes runs that differ in workload\.isl"):
        compared(mixed, runs(BEFORE, 1))


def test_invalid_and_unpaired_points_are_counted() -> None:
    broken = replace(runs(BEFORE, 1)[0], invalid=(Invalidity(code="x", message="y"),))
    alone = synthetic_point(BEFORE, 128)
    answer = compared([*runs(BEFORE, 1), broken, alone], runs(BEFORE, 1))
    assert answer.unpaired.only_before == (alone,)
    assert (answer.unpaired.invalid_before, answer.unpaired.invalid_after) == (1, 0)


def test_nothing_in_common() -> None:
    with pytest.raises(InvalidInput, match="share no valid point"):
        compared([synthetic_point(BEFORE, 1)], [synthetic_point(BEFORE, 2)])


def test_contract_of_many() -> None:
    points = runs(BEFORE, 1, 1)
    assert contract_differences(points) == ()
    assert common_contract(points) == {"origin": "synthetic", **CONTRACT}
    other = with_contract(points[1], workload__isl="1")
    assert [str(each) for each in contract_differences([points[0], other])] == [
        "workload.isl: 1 or 8192"
    ]
    assert "workload.isl" not in common_contract([points[0], other])


def test_variation_of_three_runs() -> None:
    figure = repeated([9.0, 10.0, 12.5])
    assert (figure.mean, figure.half_range, figure.count) == (10.5, 1.75, 3)
    assert figure.std == pytest.approx(1.802776)
    assert repeated([9.0]).half_range is None
    with pytest.raises(ValueError, match="no values"):
        repeated([])


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    write_points(tmp_path / "a.jsonl", [*runs(BEFORE, 1.0, 1.02), synthetic_point(BEFORE, 8)])
    write_points(tmp_path / "b.jsonl", runs(OTHER, 0.9, 0.92))
    return str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")


def test_side_by_side(sides: tuple[str, str]) -> None:
    shown = CliRunner().invoke(main, ["compare", *sides]).stdout
    assert "Varied: configuration: 1xTEP8 + 1xTEP8 MTP3 in A, 1xTEP8 + 1xTEP8 in B." in shown
    assert "|    64 | 2, 2 | total_tokens_per_s_per_gpu |" in shown
    assert "| +11.0% | better" in shown
    assert "ttft_p99_ms: 1 of 1 points lack it: no p99 TTFT that its samples support." in shown
    assert "Only in A: 1xTEP8 + 1xTEP8 MTP3 at 8." in shown


def test_json_is_what_the_schema_says(sides: tuple[str, str]) -> None:
    document = json.loads(CliRunner().invoke(main, ["compare", *sides, "--json"]).stdout)
    assert list(Draft202012Validator(schema("compare")).iter_errors(document)) == []
    assert document["pairs"][0]["figures"][0]["verdict"] == "better"


def test_refusal_ends_with_3(sides: tuple[str, str], tmp_path: Path) -> None:
    after = [with_contract(point, container__image="new") for point in runs(OTHER, 1)]
    write_points(tmp_path / "c.jsonl", after)
    done = CliRunner().invoke(main, ["compare", sides[0], str(tmp_path / "c.jsonl")])
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 2


def test_titles_reach_no_terminal_as_control_characters(tmp_path: Path) -> None:
    subject = replace(BEFORE_POINT.subject, configuration="\x1b[31mred \ud800")
    write_points(tmp_path / "a.jsonl", [replace(BEFORE_POINT, subject=subject)])
    path = str(tmp_path / "a.jsonl")
    done = CliRunner().invoke(main, ["compare", path, path])
    assert done.exit_code == 0
    assert r"\x1b[31mred \ud800" in done.stdout
    assert "\x1b" not in done.stdout


def test_no_figure_is_a_wrong_use(tmp_path: Path) -> None:
    path = str(tmp_path / "a.jsonl")
    assert CliRunner().invoke(main, ["compare", path, path, "--figures", ","]).exit_code == 2
