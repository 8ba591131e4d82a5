"""From recipes to arrays: node counts, sbatch parameters, segments, canaries, cuts."""

from __future__ import annotations

import pytest

from generator.errors import InvalidInput
from generator.sweep.directives import directive_problems
from generator.sweep.node_count import node_count
from generator.sweep.planning import Placement, plan, planned_job, sbatch_parameters
from generator.sweep.segment import segment_nodes
from generator.sweep.time_limit import format_time_limit, parse_time_limit
from tests.swept_recipes import V1, V2, data, edited, job, numbered, recipe

# --- what a recipe takes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "edits", "nodes"),
    [
        pytest.param(V1, [], 4, id="v1"),
        pytest.param(V2, [], 4, id="v2"),
        pytest.param(V1, [("decode_nodes: 2", "decode_nodes: 0")], 2, id="v1, shared nodes"),
        pytest.param(V2, [("decode: {nodes: 2", "decode: {nodes: colocate")], 2, id="v2, shared"),
        pytest.param(V1, [("decode_nodes: 2", "decode_nodes: '3'")], 5, id="digits in quotes"),
        pytest.param(
            V1,
            [("  prefill_nodes: 2\n", ""), ("  decode_nodes: 2\n", "  agg_nodes: 3\n")],
            3,
            id="v1, aggregated",
        ),
        pytest.param(
            V1, [("  prefill_nodes: 2\n", ""), ("  decode_nodes: 2\n", "")], 1, id="v1, no number"
        ),
        pytest.param(V1 + "infra: {etcd_nats_dedicated_node: true}\n", [], 5, id="v1, infra"),
        pytest.param(
            V1 + "infra: {etcd_nats_dedicated_node: true}\nfrontend: {dedicated_node: true}\n",
            [],
            5,
            id="v1, two roles on one reserved node",
        ),
        pytest.param(
            V1 + "infra: {etcd_nats_dedicated_node: true}\nfrontend: {dedicated_node: true}\n",
            [("req_rate: inf", "req_rate: inf, colocate_with_frontend: false")],
            6,
            id="v1, two roles apart",
        ),
        pytest.param(
            V2, [("type: dynamo", "type: dynamo, placement: {node: dedicated}")], 5, id="frontend"
        ),
        pytest.param(
            V2 + "services: [{name: nats, type: nats, placement: {node: dedicated}}]\n",
            [("req_rate: inf", "req_rate: inf, placement: {node: dedicated}")],
            5,
            id="v2, services and client",
        ),
    ],
)
def test_node_count(text: str, edits: list[tuple[str, str]], nodes: int) -> None:
    assert node_count(data(edited(text, *edits))) == nodes


def test_job_of_a_recipe() -> None:
    swept = recipe()
    assert [point.id for point in swept.points] == [f"{swept.digest}-c{load}" for load in (64, 128)]
    assert (swept.nodes, swept.gpus_per_node, swept.time_limit_s) == (4, 4, 3600)
    assert swept.gpu_hours == 16
    assert recipe(("slurm: {time_limit: '1:00:00'}\n", "")).time_limit_s == 3600


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        (
            [("gpus_per_node: 4", "gpus_per_node: 4, het_jobs: true")],
            (
                "tiny.yaml:5: resources.het_jobs: cannot be submitted"
                " (remove het_jobs: prefill and decode then share one allocation)"
            ),
        ),
        (
            [("'1:00:00'", "tomorrow")],
            (
                "tiny.yaml:3: slurm.time_limit: 'tomorrow' is not a time such as '2:00:00' or"
                " '1-12:00:00'"
            ),
        ),
        (
            [("64x128", "[0]")],
            "tiny.yaml:11: benchmark.concurrencies: a concurrency must be at least 1, got 0",
        ),
        (
            [("64x128", "'99999999'")],
            "tiny.yaml:11: benchmark.concurrencies: a concurrency must be at most 10000000",
        ),
        (
            [("time_limit: '1:00:00'", "account: 'a --uid=0'")],
            (
                "tiny.yaml:3: slurm.account: 'a --uid=0' cannot be the value of an sbatch option"
                " (no blanks, quotes, line ends, '#', '$', '<', '>' or backslashes; at most 400)"
            ),
        ),
        (
            [("schema: 2\n", 'schema: 2\nsbatch_directives: {mem: "0\\n#SBATCH --uid=0"}\n')],
            (
                "tiny.yaml:2: sbatch_directives.mem: '0\\n#SBATCH --uid=0' cannot be the value of"
                " an sbatch option (no blanks, quotes, line ends, '#', '$', '<', '>' or"
                " backslashes; at most 400)"
            ),
        ),
        (
            [("schema: 2\n", "schema: 2\nsbatch_directives: {array: '0-9'}\n")],
            (
                "tiny.yaml:2: sbatch_directives.array: cannot be set here"
                " (the ledger finds jobs by it)"
            ),
        ),
        (
            [("schema: 2\n", "schema: 2\nsbatch_directives: {'mem=0 --uid': '0'}\n")],
            (
                "tiny.yaml:2: sbatch_directives['mem=0 --uid']: not the name of an sbatch option"
                " (the long name without dashes, such as cpus-per-task)"
            ),
        ),
        (
            [("roles:", "rolls:")],
            "tiny.yaml:8: rolls: unknown key 'rolls' (did you mean 'roles'?)",
        ),
    ],
    ids=lambda value: value[0][1][:30] if isinstance(value, list) else None,
)
def test_recipe_that_cannot_be_submitted(edits: list[tuple[str, str]], problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        recipe(*edits)
    assert [str(each) for each in refused.value.problems] == [problem]


# --- time and segments ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [("60", 3600), ("0:30", 30), ("08:00:00", 28800), ("4-0", 345600), ("1-1:1:1", 90061)],
)
def test_time_limit(text: str, limit_s: int) -> None:
    assert parse_time_limit(text) == limit_s
    assert parse_time_limit(format_time_limit(limit_s)) == limit_s


@pytest.mark.parametrize(
    "text", ["", "0", "0:0:0", "UNLIMITED", "1:2:3:4", "-1", "1h", "1-", "1\n"]
)
def test_no_time_limit(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time|would never end"):
        parse_time_limit(text)


@pytest.mark.parametrize(
    ("nodes", "per_rack", "racks", "segment"),
    [(6, 18, None, 6), (18, 18, None, 18), (20, 18, 2, 10), (36, 18, 2, 18), (6, None, None, None)],
)
def test_segment(nodes: int, per_rack: int | None, racks: int | None, segment: int | None) -> None:
    assert segment_nodes(nodes, per_rack, racks) == segment


@pytest.mark.parametrize(
    ("nodes", "racks", "reason"),
    [
        (20, None, "the site file does not say how many racks there are"),
        (19, 2, "cannot be split into equal segments of at most 18"),
        (54, 2, "54 nodes in segments of 18 do not fit 2 racks of 18"),
        (22, 1, "22 nodes in segments of 11 do not fit 1 rack of 18"),
    ],
)
def test_no_segment(nodes: int, racks: int | None, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        segment_nodes(nodes, 18, racks)


# --- sbatch parameters ------------------------------------------------------------------------

RACK = Placement(account="inference", partition="batch", nodes_per_rack=18, has_segment=True)


def test_parameters_of_a_site() -> None:
    parameters = sbatch_parameters(recipe(), RACK)
    assert (parameters.nodes, parameters.time_minutes, parameters.segment) == (4, 60, 4)
    assert (parameters.account, parameters.partition) == ("inference", "batch")
    assert (parameters.gpus_per_node, parameters.gres) == (4, None)


def test_parameters_of_the_recipe_come_first() -> None:
    text = "account: mine, time_limit: '0:0:90'"
    own = "sbatch_directives: {mem: '0', segment: '2', contiguous: ''}\n"
    swept = recipe(("time_limit: '1:00:00'", text), text=V2 + own)
    placement = Placement(
        account="inference", has_segment=True, directives={"mem": "1", "nice": "5"}
    )
    parameters = sbatch_parameters(swept, placement)
    assert (parameters.account, parameters.time_minutes, parameters.segment) == ("mine", 2, 2)
    assert parameters.directives == (("contiguous", None), ("mem", "0"), ("nice", "5"))


def test_gres_replaces_gpus_per_node() -> None:
    parameters = sbatch_parameters(recipe(), Placement(gres="gpu:gb300:{gpus}"))
    assert (parameters.gpus_per_node, parameters.gres) == (0, "gpu:gb300:4")


def test_slurm_without_the_option_gets_no_segment() -> None:
    assert sbatch_parameters(recipe(), Placement(nodes_per_rack=18)).segment is None


def test_segment_that_does_not_divide() -> None:
    swept = recipe(text=V2 + "sbatch_directives: {segment: '3'}\n")
    with pytest.raises(InvalidInput, match=r"segment 3 does not divide the job's 4 nodes"):
        sbatch_parameters(swept, RACK)


def test_deployment_larger_than_a_rack_names_its_recipe() -> None:
    with pytest.raises(InvalidInput, match=r"tiny.yaml: 20 nodes are more than a rack of 18"):
        planned_job(numbered(0, nodes=20), ("p",), "", RACK)


# --- arrays -----------------------------------------------------------------------------------


def test_array_limit_1001_with_2400_jobs() -> None:
    jobs = [job(numbered(0))] * 2400
    arrays = plan(jobs, max_array_tasks=1001, canary=False).arrays
    assert [len(array.jobs) for array in arrays] == [1001, 1001, 398]


def test_jobs_share_an_array_by_parameters() -> None:
    jobs = [job(numbered(number, nodes=nodes)) for number, nodes in enumerate([4, 8, 4, 12, 8])]
    arrays = plan(jobs, max_array_tasks=1001, canary=False).arrays
    assert [[each.recipe.name for each in array.jobs] for array in arrays] == [
        ["tiny-0", "tiny-2"],
        ["tiny-1", "tiny-4"],
        ["tiny-3"],
    ]
    assert not any(array.held for array in arrays)


def test_canary_is_the_first_of_the_cheapest() -> None:
    jobs = [job(numbered(number, nodes=nodes)) for number, nodes in enumerate([4, 8, 4, 12, 8])]
    planned = plan(jobs, max_array_tasks=1001)
    free = [each.recipe.name for array in planned.arrays if not array.held for each in array.jobs]
    assert free == ["tiny-0", "tiny-1", "tiny-3"]
    assert planned.held_jobs == 2


def test_healthy_configuration_needs_no_canary() -> None:
    jobs = [job(numbered(number)) for number in range(4)]
    healthy = frozenset({jobs[0].configuration})
    assert plan(jobs, max_array_tasks=1001, healthy=healthy).held_jobs == 0
    assert plan(jobs, max_array_tasks=1001).held_jobs == 3


def test_other_image_is_another_configuration() -> None:
    other = recipe(("container: image", "container: another"))
    assert job(recipe()).configuration != job(other).configuration


def test_limit_is_shared_out() -> None:
    jobs = [job(numbered(number, nodes=4 if number < 6 else 8)) for number in range(8)]
    arrays = plan(jobs, max_array_tasks=1001, max_parallel=4, canary=False).arrays
    assert [array.max_parallel for array in arrays] == [3, 1]


def test_cost_of_a_plan() -> None:
    planned = plan([job(recipe()), job(numbered(1, nodes=8))], max_array_tasks=9, canary=False)
    assert (planned.points, planned.gpu_hours, planned.most_nodes) == (3, 48, 12)


@pytest.mark.parametrize("name", ["arra", "jo", "job-n", "dep", "nod", "part", "acc", "nta"])
def test_the_beginning_of_a_refused_option_is_refused(name: str) -> None:
    """Sbatch takes any beginning that only one option has."""
    (problem,) = directive_problems({name: "0-2"}, "sbatch_directives")
    assert (problem.path, problem.message.split(" for ")[0]) == (
        f"sbatch_directives.{name}",
        "sbatch could take it",
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("time", "slurm.time_limit"),
        ("time-min", "slurm.time_limit"),
        ("gpus-per-node", "site file's gpus and gres"),
        ("gres", "site file's gpus and gres"),
        ("gpus", "site file's gpus and gres"),
        ("nodes", "recipe's roles"),
        ("ntasks-per-gpu", "recipe's roles"),
    ],
)
def test_what_the_plan_counts_is_no_directive(name: str, hint: str) -> None:
    (problem,) = directive_problems({name: "8"}, "slurm.directives")
    assert hint in problem.hint


def test_whole_options_that_no_plan_depends_on_pass() -> None:
    free = {"mem": "0", "cpus-per-task": "72", "nice": "5", "segment": "2", "contiguous": ""}
    assert not list(directive_problems(free, "sbatch_directives"))
