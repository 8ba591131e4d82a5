"""Reading a spec file: schema, then meaning, every problem of the file at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from generator.documents import Document, read_document
from generator.engine_version import release
from generator.errors import InvalidInput, Problem
from generator.parallel import ParallelLayout, WorkerPool, parse_layout
from generator.spec.flags import ARGUMENT_SECTIONS, flag_problems
from generator.spec.placement import Cluster
from generator.spec.sections import digest_of, engine_of, non_finite, pool_of, sizing_of
from generator.spec.spec import (
    DeploymentSpec,
    FieldPath,
    ProbeSpec,
    Spec,
    SpeculativeTokens,
    StudySpec,
)
from generator.spec.studies import listed_ladders, study_specs
from generator.validation import problems as schema_problems
from generator.wording import shown
from generator.workload import Workload, parse_concurrencies, refuse_repeats

T = TypeVar("T")


def load_spec(path: Path) -> Spec:
    """Read and validate a spec file; raises InvalidInput with every problem found in it."""
    return spec_from_document(read_document(path), folder=path.parent)


def spec_from_document(document: Document, *, folder: Path) -> Spec:
    """The spec a document describes; relative paths in it start at ``folder``."""
    return _SpecReader(document, folder).read()


class _SpecReader:
    """Turns the document into dataclasses and collects every problem on the way."""

    def __init__(self, document: Document, folder: Path) -> None:
        self._document = document
        self._folder = folder
        self._problems: list[Problem] = list(schema_problems(document, "spec"))
        self._broken = tuple(problem.path for problem in self._problems)
        self._data: dict[str, Any] = document.data if isinstance(document.data, dict) else {}
        self._problems += [
            document.problem(path, f"{shown(number)} is no number a recipe can hold", "quote it")
            for path, number in non_finite(self._data, ())
            if self._is_sound(*path)
        ]

    def read(self) -> Spec:
        self._problems += flag_problems(
            self._document, self._flag_sections(), self._engine_version()
        )
        deployments = self._deployments()
        self._check_unique(deployments)
        accuracy = self._accuracy(deployments)
        probes = self._probes()
        studies = self._studies()
        self._require_recipes()
        if self._problems:
            raise InvalidInput(sorted(self._problems, key=lambda problem: problem.line))
        data = self._data
        output = data.get("output")
        return Spec(
            document=self._document,
            digest=digest_of(data),
            output=self._folder / output if output else None,
            profiles=tuple(self._folder / name for name in data.get("profiles", ())),
            model_config=self._folder / data["model"]["config"],
            model={key: value for key, value in data["model"].items() if key != "config"},
            identity=data.get("identity"),
            cluster=Cluster(**data["cluster"]),
            engine=engine_of(data["engine"]),
            dynamo=data.get("dynamo"),
            frontend=data.get("frontend"),
            sections=data.get("sections", {}),
            workload=Workload(**data["workload"]),
            benchmark=data.get("benchmark", {}),
            sizing=sizing_of(data.get("sizing", {})),
            deployments=deployments + accuracy,
            probes=probes,
            accuracy_threshold=data.get("accuracy", {}).get("threshold"),
            studies=studies,
        )

    def _is_sound(self, *path: str | int) -> bool:
        """False where the schema already complained about this part of the document."""
        dotted = self._document.problem(path, "").path
        return not any(
            broken == dotted or broken.startswith((f"{dotted}.", f"{dotted}["))
            for broken in self._broken
        )

    def _read_at(self, path: FieldPath, read: Callable[[], T]) -> T | None:
        """What ``read`` gives; None where it finds problems, which get the position of ``path``."""
        try:
            return read()
        except InvalidInput as error:
            self._problems += [
                self._document.problem(path, problem.message, problem.hint)
                for problem in error.problems
            ]
            return None

    def _flag_sections(self) -> dict[FieldPath, list[str]]:
        """The flags of every section of the spec that sets some."""
        sizings: list[FieldPath] = [("sizing",)]
        sizings += [("groups", index, "sizing") for index in range(len(self._list("groups")))]
        paths: list[FieldPath] = [("engine", section) for section in ARGUMENT_SECTIONS]
        paths += [(*sizing, role) for sizing in sizings for role in ("prefill", "decode")]
        return {path: list(self._rules_at(path)) for path in paths}

    def _engine_version(self) -> str | None:
        """The version flags are looked up by; None where the spec has none that is a version."""
        version = self._rules_at(("engine",)).get("version")
        try:
            release(version if isinstance(version, str) else "")
        except InvalidInput:
            return None
        return str(version)

    def _list(self, key: str) -> list[Any]:
        value = self._data.get(key, [])
        return value if isinstance(value, list) else []

    def _rules_at(self, path: FieldPath) -> Mapping[str, Any]:
        value: Any = self._data
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return {}
        return value if isinstance(value, dict) and self._is_sound(*path) else {}

    def _deployments(self) -> tuple[DeploymentSpec, ...]:
        return tuple(
            deployment
            for index, group in enumerate(self._list("groups"))
            if isinstance(group, dict)
            for deployment in self._group(index, group)
        )

    def _group(self, index: int, group: dict[str, Any]) -> Iterator[DeploymentSpec]:
        path: FieldPath = ("groups", index)
        if "decode" not in group or not all(
            self._is_sound(*path, key) for key in ("decode", "mtp", "sizing")
        ):
            return
        decode = self._read_at((*path, "decode"), lambda: pool_of(group["decode"]))
        rows = group.get("deployments")
        rows = rows if isinstance(rows, list) else []
        prefills = {
            number: self._read_at((*path, "deployments", number, "prefill"), partial(pool_of, pool))
            for number, row in enumerate(rows)
            if isinstance(row, dict)
            and (pool := row.get("prefill")) is not None
            and self._is_sound(*path, "deployments", number, "prefill")
        }
        sound = [
            (number, row)
            for number, row in enumerate(rows)
            if isinstance(row, dict) and self._is_sound(*path, "deployments", number)
        ]
        loads = [max(parse_concurrencies(row["concurrencies"])) for _, row in sound]
        for number, row in sound:
            row_path = (*path, "deployments", number)
            levels = row["concurrencies"]
            self._read_at((*row_path, "concurrencies"), partial(refuse_repeats, levels))
            prefill = prefills[number]
            if prefill is None or decode is None:
                continue
            yield self._deployment(
                group, row, row_path, prefill=prefill, decode=decode, group_load=max(loads)
            )

    def _deployment(
        self,
        group: dict[str, Any],
        row: dict[str, Any],
        path: FieldPath,
        *,
        prefill: WorkerPool,
        decode: WorkerPool,
        group_load: int,
    ) -> DeploymentSpec:
        tokens = group.get("mtp", 0)
        by_role = tokens if isinstance(tokens, dict) else {"prefill": tokens, "decode": tokens}
        return DeploymentSpec(
            file=row["file"],
            folder="",
            name=str(self._data.get("name", "")).replace("{file}", row["file"]),
            group=group.get("name", str(decode)),
            prefill=prefill,
            decode=decode,
            speculative_tokens=SpeculativeTokens(**by_role),
            concurrencies=parse_concurrencies(row["concurrencies"]),
            sizing_concurrency=group.get("concurrency", group_load),
            sizing=sizing_of(self._rules_at(("sizing",)), group.get("sizing", {})),
            time_limit=row.get("time_limit", group.get("time_limit")),
            benchmark=self._data.get("benchmark", {}),
            benchmark_path=("benchmark",),
            path=path,
        )

    def _require_recipes(self) -> None:
        if self._data and not self._data.keys() & {"groups", "studies"}:
            self._problems.append(
                self._document.problem(
                    (), "'groups' is required", "or studies, where no layout is chosen yet"
                )
            )

    def _studies(self) -> tuple[StudySpec, ...]:
        if not self._is_sound("workload") or not self._is_sound("studies"):
            return ()
        for path, ladder in listed_ladders(self._data):
            self._read_at(path, partial(refuse_repeats, ladder))
        studies: dict[tuple[str, str], StudySpec] = {}
        for study in study_specs(self._data, self._read_at):
            first = studies.setdefault((study.engine.folder, study.engine.file), study)
            if first is not study:
                line = self._document.line(first.engine.path)
                message = f"{study.phase} study '{study.engine.file}' is already on line {line}"
                self._problems.append(
                    self._document.problem(study.engine.path, message, "name each layout once")
                )
        return tuple(studies.values())

    def _check_unique(self, deployments: tuple[DeploymentSpec, ...]) -> None:
        first: dict[str, DeploymentSpec] = {}
        for deployment in deployments:
            other = first.setdefault(deployment.file.casefold(), deployment)
            if other is not deployment:
                line = self._document.line((*other.path, "file"))
                self._problems.append(
                    self._document.problem(
                        (*deployment.path, "file"),
                        f"deployment '{deployment.file}' is already on line {line}",
                        "give each deployment a file name of its own",
                    )
                )

    def _accuracy(self, deployments: tuple[DeploymentSpec, ...]) -> tuple[DeploymentSpec, ...]:
        section = self._data.get("accuracy")
        if not isinstance(section, dict) or not self._is_sound("accuracy"):
            return ()
        files = {deployment.file for deployment in deployments}
        wanted = section.get("of", sorted(files))
        for index, name in enumerate(section.get("of", [])):
            if name not in self._written_files():
                self._problems.append(
                    self._document.problem(
                        ("accuracy", "of", index),
                        f"no deployment has the file name '{name}'",
                        "name files of the groups above",
                    )
                )
        repeated = tuple(
            self._repeat(deployment, section)
            for deployment in deployments
            if deployment.file in wanted
        )
        taken = files if not section.get("folder") else set()
        for deployment in repeated:
            if deployment.file in taken:
                self._problems.append(
                    self._document.problem(
                        ("accuracy", "file"),
                        f"'{deployment.file}' is also the file of a deployment",
                        "add a suffix, as in '{file}-acc', or a folder",
                    )
                )
            taken = taken | {deployment.file}
        return repeated

    def _written_files(self) -> list[Any]:
        """The file names of all deployments, of those with mistakes too."""
        groups = [group for group in self._list("groups") if isinstance(group, dict)]
        lists = [group.get("deployments") for group in groups]
        rows = [row for rows in lists if isinstance(rows, list) for row in rows]
        return [row.get("file") for row in rows if isinstance(row, dict)]

    def _repeat(self, deployment: DeploymentSpec, section: dict[str, Any]) -> DeploymentSpec:
        file = section["file"].replace("{file}", deployment.file)
        return DeploymentSpec(
            file=file,
            folder=section.get("folder", ""),
            name=str(self._data.get("name", "")).replace("{file}", file),
            group=deployment.group,
            prefill=deployment.prefill,
            decode=deployment.decode,
            speculative_tokens=deployment.speculative_tokens,
            concurrencies=(),
            sizing_concurrency=deployment.sizing_concurrency,
            sizing=deployment.sizing,
            time_limit=deployment.time_limit,
            benchmark=section["benchmark"],
            benchmark_path=("accuracy", "benchmark"),
            path=deployment.path,
        )

    def _probes(self) -> tuple[ProbeSpec, ...]:
        section = self._data.get("probe")
        if not self._is_sound("workload") or not self._is_sound("probe", "workload"):
            return ()
        rows = section.get("engines") if isinstance(section, dict) else None
        if not isinstance(section, dict) or not isinstance(rows, list):
            return ()
        probes: list[ProbeSpec] = []
        for index, row in enumerate(rows):
            path: FieldPath = ("probe", "engines", index)
            if not isinstance(row, dict) or not self._is_sound(*path):
                continue
            layout = self._read_at((*path, "layout"), partial(parse_layout, row["layout"]))
            if layout is not None:
                probes.append(self._probe(section, row, path, layout))
        return tuple(probes)

    def _probe(
        self, section: dict[str, Any], row: dict[str, Any], path: FieldPath, layout: ParallelLayout
    ) -> ProbeSpec:
        return ProbeSpec(
            file=row["file"],
            folder=section.get("folder", ""),
            name=str(section.get("name", self._data.get("name", ""))).replace(
                "{file}", row["file"]
            ),
            pool=WorkerPool(workers=1, layout=layout),
            speculative_tokens=row.get("mtp", 0),
            role="decode",
            concurrency=row["concurrency"],
            concurrencies=(row["concurrency"],),
            workload=Workload(**section.get("workload", self._data.get("workload", {}))),
            time_limit=section.get("time_limit"),
            benchmark=section.get("benchmark", self._data.get("benchmark", {})),
            benchmark_path=("probe", "benchmark") if "benchmark" in section else ("benchmark",),
            path=path,
        )
