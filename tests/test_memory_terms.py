"""Which measured start-up an engine's memory is taken from, and what is said of one that is not."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from jsonschema import Draft202012Validator

from generator.capacity.engine_memory import Basis, UnusedProfile
from generator.estimation import Estimate, estimate_spec
from generator.units import gib
from generator.validation import schema
from tests.small_specs import run

NAME = "qwen3.8-2.4t-gb300-8k1k"
RUN_7, RUN_1 = "probe-tp4dep4-cc2048", "probe-tep8-mtp-cc4"
# A backend that leaves the shared expert sharded over tensor ranks, which run 7's did not.
OTHER_BACKEND = ("flashinfer_nvlink_one_sided", "flashinfer_nvlink_two_sided")


@pytest.fixture
def spec(tmp_path: Path, repository: Path) -> Path:
    """A copy of the committed spec beside copies of its models."""
    shutil.copytree(repository / "recipes/models", tmp_path / "models")
    (tmp_path / "specs").mkdir()
    return Path(shutil.copy(repository / f"recipes/specs/{NAME}.yaml", tmp_path / "specs"))


def rewrite(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")


def unused(estimate: Estimate, engine: str) -> tuple[str, float, float]:
    """The profile that is not used, its weights and those computed, GiB to two decimals."""
    memory = estimate.capacities[engine].memory
    assert memory.terms.weights.basis is Basis.COMPUTED
    assert memory.terms.non_torch.basis is Basis.ASSUMED
    profile = memory.unused_profile
    assert isinstance(profile, UnusedProfile)
    assert memory.terms.weights.bytes_per_rank == profile.computed_weights_bytes_per_rank
    return (
        profile.name,
        round(gib(profile.weights_bytes_per_rank), 2),
        round(gib(profile.computed_weights_bytes_per_rank), 2),
    )


def test_runs_of_the_article_stay_measured(spec: Path) -> None:
    estimate = estimate_spec(spec)
    probes = [estimate.capacities[probe.spec.file] for probe in estimate.derivation.probes]
    assert len(probes) == 8
    for capacity in probes:
        assert capacity.memory.terms.weights.basis is Basis.MEASURED
        assert capacity.memory.unused_profile is None


def test_a_backend_with_other_weights_takes_no_profile(spec: Path) -> None:
    rewrite(spec, f"all2all-backend: {OTHER_BACKEND[0]}", f"all2all-backend: {OTHER_BACKEND[1]}")
    estimate = estimate_spec(spec)
    assert unused(estimate, RUN_7) == ("run 7", 107.51, 100.98)
    # One data rank has no all-to-all: there the backend changes nothing.
    assert estimate.capacities[RUN_1].memory.terms.weights.basis is Basis.MEASURED


def test_a_checkpoint_with_other_exclusions_takes_no_profile(spec: Path) -> None:
    """Linear attention in NVFP4 takes 1.4375 bytes less of a weight: 5.06 GiB of a rank of TP8."""
    config = spec.parent.parent / "models/qwen3.8-2.4t-a95b-nvfp4/hf_quant_config.json"
    rewrite(config, '"*linear_attn*",\n', "")
    assert unused(estimate_spec(spec), RUN_1) == ("run 1", 169.28, 164.16)


@pytest.mark.parametrize(
    ("weights", "used"),
    [("106.90", "107.51"), ("106.92", "106.92"), ("107.98", "107.98"), ("107.99", "107.51")],
)
def test_half_a_percent_is_the_same_weights(
    weights: str, used: str, spec: Path, repository: Path
) -> None:
    """107.45 GiB are computed for run 7. Where a user's file is further off, the package's is next.

    0.5 % of that are 0.537 GiB to either side.
    """
    measured = repository / "generator/data/measured/qwen3.8-2.4t-gb300.yaml"
    head, *runs = re.split(r"(?=  - name: )", measured.read_text("utf-8"))
    own = head + runs[6].replace("107.51", weights)
    (spec.parent / "own.yaml").write_text(own, "utf-8")
    with spec.open("a", encoding="utf-8") as file:
        file.write("profiles: [own.yaml]\n")
    memory = estimate_spec(spec).capacities[RUN_7].memory
    assert f"{gib(memory.terms.weights.bytes_per_rank):.2f}" == used
    assert memory.unused_profile is None


# --- what the answer says ---------------------------------------------------------------------


def said(result: Result) -> str:
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


def test_the_answer_names_the_profile_and_its_rows(spec: Path) -> None:
    rewrite(spec, f"all2all-backend: {OTHER_BACKEND[0]}", f"all2all-backend: {OTHER_BACKEND[1]}")
    text = said(run("capacity", str(spec)))
    assert (
        "probe TP4DP4+EP s528: measured profile 'run 7' not used: its weights 107.51 GiB, computed"
        " 100.98 GiB."
    ) in text
    assert "probe TP4DP4+EP s656, D TP4DP4+EP s656: measured profile 'run 8' not used" in text
    assert "'run 1' not used" not in text
    document = json.loads(run("capacity", str(spec), "--json").stdout)
    Draft202012Validator(schema("capacity")).validate(document)
    memories = {engine["name"]: engine["memory"] for engine in document["engines"]}
    assert memories[RUN_7]["unused_profile"]["name"] == "run 7"
    assert "unused_profile" not in memories[RUN_1]


def test_nothing_is_said_of_profiles_that_are_used(spec: Path) -> None:
    assert "not used" not in said(run("capacity", str(spec)))


def test_each_set_of_ranges_has_its_rows(spec: Path) -> None:
    rewrite(spec, "headroom_sequences: 16", "headroom_sequences: 32")
    text = said(run("capacity", str(spec)))
    ranges = dict(re.findall(r"off by: ([^()]*) \((\w+): ", text))
    assert ranges == {
        "context +-0.78, non-torch +-2.31, activation +-14.92, graphs +-24.11, KV cache +-41.34": (
            "PIECEWISE"
        ),
        "context +-0.78, non-torch +-2.31, activation +-1.68, graphs +-8.04, KV cache +-12.03": (
            "FULL_DECODE_ONLY"
        ),
        # s288 has 1168 tokens in a batch, and an activation that grows with them.
        "context +-0.78, non-torch +-2.31, activation +-1.73, graphs +-8.04, KV cache +-12.08": (
            "FULL_DECODE_ONLY"
        ),
    }
    assert "(PIECEWISE: P TEP8 mtp3 s32, P TP4DP2+EP mtp3 s32 b2176," in text
    assert "P TP2DP4+EP s32)." in text
    assert "(FULL_DECODE_ONLY: probe TEP8 mtp3 s36," in text


def test_one_set_of_ranges_needs_no_rows(spec: Path) -> None:
    text = said(run("capacity", str(spec)))
    assert text.count("off by: ") == 1
    assert "graphs +-24.11, KV cache +-41.34. |" in text
