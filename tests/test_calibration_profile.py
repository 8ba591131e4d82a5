"""Measured profiles out of logs: what is filed, what is refused, and who then uses it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.calibration import (
    EngineDescription,
    calibration_of,
    extend_profile_file,
    measured_profile,
    subject_of_description,
    write_profile_file,
)
from generator.capacity.capacity import EngineCapacity
from generator.capacity.engine_memory import Basis
from generator.errors import InvalidInput
from generator.estimation import estimate_engine, estimate_spec
from generator.facts import read_profiles
from generator.units import GIB
from tests.calibrations import MODEL, SPEC, log_of, of_run, run_description, start_up
from tests.composed_logs import (
    RUN_TERMS,
    RUNS,
    block_line,
)


def profile_run(repository: Path, tmp_path: Path, number: int, **flags: Any) -> Any:
    return measured_profile(of_run(repository, tmp_path, number, **flags), "2026-08-14")


class TestProfile:
    def test_all_runs_of_the_article(self, repository: Path, tmp_path: Path) -> None:
        """Eight logs make the eight runs of the package's own profile."""
        runs = [profile_run(repository, tmp_path, number) for number in RUNS]
        target = tmp_path / "measured.yaml"
        update = extend_profile_file(target, runs)
        assert not target.exists()
        write_profile_file(update)
        own = read_profiles(repository / "generator/data/measured/qwen3.8-2.4t-gb300.yaml")
        read = read_profiles(target)
        for mine, theirs in zip(read, own, strict=True):
            assert replace(mine, name="", source="", as_of="") == replace(
                theirs, name="", source="", as_of=""
            )
        assert [message.split()[0] for message in update.messages] == ["added"] * 8

    def test_an_existing_file_is_extended(self, repository: Path, tmp_path: Path) -> None:
        target = tmp_path / "own.yaml"
        shutil.copy(repository / "generator/data/measured/qwen3.8-2.4t-gb300.yaml", target)
        update = extend_profile_file(target, [profile_run(repository, tmp_path, 7)])
        assert update.messages == ("'run 7' agrees with the log",)
        assert update.text.startswith("# Qwen3.8-2.4T NVFP4 on GB300")

    def test_a_run_that_differs_is_replaced_aloud(self, repository: Path, tmp_path: Path) -> None:
        target = tmp_path / "own.yaml"
        write_profile_file(extend_profile_file(target, [profile_run(repository, tmp_path, 7)]))
        other = replace(RUN_TERMS[7], non_torch=3.0, kv_cache=133.86)
        update = extend_profile_file(target, [profile_run(repository, tmp_path, 7, terms=other)])
        assert update.messages == (
            (
                "replaced 'TP4DP4+EP s528': non torch 2.90 GiB -> 3.00 GiB, kv cache 133.96 GiB ->"
                " 133.86 GiB"
            ),
        )

    def test_of_two_logs_of_one_engine_the_least_kv_cache_counts(
        self, repository: Path, tmp_path: Path
    ) -> None:
        full = profile_run(repository, tmp_path, 7)
        less = replace(full, kv_cache_bytes_per_rank=full.kv_cache_bytes_per_rank - GIB)
        update = extend_profile_file(tmp_path / "own.yaml", [full, less])
        assert "least KV cache" in update.messages[0]
        assert "kv_cache: 132.96 GiB" in update.text

    @pytest.mark.parametrize(
        ("change", "name"),
        [
            ({"gpu_memory_utilization": 0.9}, "gpu_memory_utilization"),
            ({"engine_total_bytes": 200 * GIB}, "engine_total"),
        ],
    )
    def test_a_file_of_other_start_ups(
        self, change: dict[str, Any], name: str, repository: Path, tmp_path: Path
    ) -> None:
        target = tmp_path / "own.yaml"
        run = profile_run(repository, tmp_path, 7)
        write_profile_file(extend_profile_file(target, [run]))
        with pytest.raises(InvalidInput, match=f"{name} is .* in the file, but .*own"):
            extend_profile_file(target, [replace(run, **change)])

    def test_names_are_told_apart(self, repository: Path, tmp_path: Path) -> None:
        run = profile_run(repository, tmp_path, 7)
        twin = replace(run, key=replace(run.key, max_num_batched_tokens=545))
        update = extend_profile_file(tmp_path / "own.yaml", [run, twin])
        assert update.messages == ("added 'TP4DP4+EP s528'", "added 'TP4DP4+EP s528 (2)'")

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (3, "figures that are NOT FOUND in the log: total, cuda context, non torch"),
            (0, "figures that are NOT FOUND in the log"),
        ],
    )
    def test_what_is_not_found_is_not_filed(
        self, lines: int, message: str, repository: Path, tmp_path: Path
    ) -> None:
        text = list(start_up(RUN_TERMS[1], is_older=False))[:lines] or [block_line(1088)]
        log = log_of(tmp_path, *text)
        subject = subject_of_description(run_description(repository, RUNS[1]), log)
        with pytest.raises(InvalidInput, match=message):
            measured_profile(calibration_of(log, subject), "2026-08-14")

    def test_what_is_not_told_is_not_filed(self, repository: Path, tmp_path: Path) -> None:
        log = log_of(tmp_path, *start_up(RUN_TERMS[1], is_older=False))
        description = EngineDescription(
            model=repository / MODEL,
            gpu="gb300",
            layout="TEP8",
            engine_version=None,
            flags={},
            workload=None,
            concurrency=None,
        )
        calibration = calibration_of(log, subject_of_description(description, log))
        with pytest.raises(InvalidInput) as caught:
            measured_profile(calibration, "2026-08-14")
        assert caught.value.problems[0].message == (
            "a profile needs settings that are not in the log: --engine-version, --max-num-seqs,"
            " --max-num-batched-tokens, --max-cudagraph-capture-size, --cudagraph-mode, --mtp"
        )

    def test_an_account_that_does_not_close_is_not_filed(
        self, repository: Path, tmp_path: Path
    ) -> None:
        odd = replace(RUN_TERMS[7], kv_cache=120.0)
        with pytest.raises(InvalidInput, match="needs an account that closes"):
            profile_run(repository, tmp_path, 7, terms=odd)

    def test_nothing_is_filed_without_an_engine(self, tmp_path: Path) -> None:
        log = log_of(tmp_path, *start_up(RUN_TERMS[1], is_older=False))
        with pytest.raises(InvalidInput, match="needs to know the engine"):
            measured_profile(calibration_of(log, None), "2026-08-14")


def capacity_of_run_7(repository: Path, **more: Any) -> EngineCapacity:
    flags = dict(run_description(repository, RUNS[7]).flags)
    profiles = more.pop("profiles", ())
    return estimate_engine(
        repository / MODEL,
        "gb300",
        "TP4DP4+EP",
        {**flags, **more},
        "0.29.0",
        None,
        profiles=profiles,
    )


class TestProfilesInUse:
    """What calibrate writes is what capacity and specs then take."""

    def written(self, repository: Path, tmp_path: Path) -> Path:
        target = tmp_path / "measured.yaml"
        terms = replace(RUN_TERMS[7], non_torch=3.9, kv_cache=132.96)
        profile = profile_run(repository, tmp_path, 7, terms=terms, engine_version="0.29.0")
        write_profile_file(extend_profile_file(target, [profile]))
        return target

    def test_capacity_takes_a_given_profile(self, repository: Path, tmp_path: Path) -> None:
        profiles = read_profiles(self.written(repository, tmp_path))
        without = capacity_of_run_7(repository)
        measured = capacity_of_run_7(repository, profiles=profiles)
        assert without.memory.kv_cache.basis is Basis.ASSUMED
        assert measured.memory.terms.non_torch.basis is Basis.MEASURED
        assert measured.memory.terms.non_torch.source == "start-up log worker.log"
        assert measured.memory.kv_cache.bytes_per_rank / GIB == pytest.approx(132.96, abs=0.02)

    def test_only_for_exactly_these_settings(self, repository: Path, tmp_path: Path) -> None:
        profiles = read_profiles(self.written(repository, tmp_path))
        other = capacity_of_run_7(repository, profiles=profiles, max_num_seqs=512)
        assert other.memory.terms.non_torch.basis is Basis.ASSUMED

    def test_a_spec_names_its_profiles(self, repository: Path, tmp_path: Path) -> None:
        terms = replace(RUN_TERMS[7], non_torch=3.9, kv_cache=132.96)
        profile = profile_run(repository, tmp_path, 7, terms=terms)
        write_profile_file(extend_profile_file(tmp_path / "measured" / "own.yaml", [profile]))
        spec = (repository / SPEC).read_text(encoding="utf-8")
        spec = spec.replace("../models/", f"{repository}/recipes/models/")
        file = tmp_path / "spec.yaml"
        file.write_text(f"{spec}\nprofiles: [measured/own.yaml]\n", encoding="utf-8")
        probe = "probe-tp4dep4-cc2048"
        memory = estimate_spec(file).capacities[probe].memory
        assert memory.terms.non_torch.bytes_per_rank == round(3.9 * GIB)
        given = estimate_spec(file, (replace(profile, non_torch_bytes_per_rank=GIB),))
        assert given.capacities[probe].memory.terms.non_torch.bytes_per_rank == GIB

    def test_a_spec_s_profile_that_is_missing(self, repository: Path, tmp_path: Path) -> None:
        spec = (repository / SPEC).read_text(encoding="utf-8")
        spec = spec.replace("../models/", f"{repository}/recipes/models/")
        file = tmp_path / "spec.yaml"
        file.write_text(f"{spec}\nprofiles: [gone.yaml]\n", encoding="utf-8")
        with pytest.raises(InvalidInput, match=r"gone\.yaml: no such file"):
            estimate_spec(file)
