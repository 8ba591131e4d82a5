"""The schemas of what a sweep writes, against what is written and against nonsense."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from generator.cluster.job_file import SrtctlLauncher, read_job_file, read_result
from generator.errors import InvalidInput
from generator.sweep.events import End, Event, Record, record_line
from generator.sweep.looking import glance
from generator.sweep.status_document import status_document
from generator.validation import schema
from tests.fake_cluster import FakeCluster
from tests.property.test_ledger_properties import EVENTS
from tests.small_sweeps import recipes, resume, submit, sweep_folder

LEDGER = Draft202012Validator(schema("ledger"))
STATUS = Draft202012Validator(schema("status"))
NAMES = ("ledger", "status", "job", "result", "submission", "cancellation", "logs")


def errors(validator: Any, document: Any) -> list[str]:
    return [error.json_path for error in validator.iter_errors(document)]


def described(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(part, dict):
        return
    for name, each in part.get("properties", {}).items():
        yield f"{place}.{name}", each
        yield from described(each, f"{place}.{name}")
    for name, each in part.get("$defs", {}).items():
        yield from described(each, name)


ALL = [
    pytest.param(name, each, id=place)
    for name in NAMES
    for place, each in described(schema(name), name)
]


@pytest.mark.parametrize(("name", "part"), ALL)
def test_property_is_described_and_its_examples_are_valid(name: str, part: dict[str, Any]) -> None:
    assert part["description"].endswith(".")
    assert part["examples"]
    alone = Draft202012Validator({**part, "$defs": schema(name).get("$defs", {})})
    assert [each for each in part["examples"] if not alone.is_valid(each)] == []


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))


def test_a_sweep_writes_what_the_schemas_say(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path, canary=True), FakeCluster()
    swept = recipes(4)
    cluster.fails[swept[2].points[0].id] = "the launcher ended with 3"
    submit(folder, cluster, swept)
    for _ in range(3):
        cluster.run()
        resume(folder, cluster)
    lines = [json.loads(line) for line in folder.ledger.path.read_bytes().splitlines()]
    assert {line["event"] for line in lines} >= {
        "planned", "intended", "submitted", "released", "done", "failed"
    }  # fmt: skip
    assert [each for line in lines for each in errors(LEDGER, line)] == []
    document = status_document(folder, folder.read_settings(), glance(folder, cluster), ())
    assert errors(STATUS, json.loads(json.dumps(document))) == []
    for name in ("job", "result"):
        written = [json.loads(path.read_text()) for path in folder.root.rglob(f"{name}.json")]
        assert len(written) >= 4
        validator = Draft202012Validator(schema(name))
        assert [each for found in written for each in errors(validator, found)] == []


@given(EVENTS)
def test_every_kind_of_event_is_in_the_schema(event: Event) -> None:
    """Tokens and points of these are nonsense, so only other places count."""
    line = json.loads(record_line(Record(at="", event=event)))
    line |= {"token": "0a"} if "token" in line else {}
    line |= {"point": "0123456789abcdef-c1"} if "point" in line else {}
    assert errors(LEDGER, line) == []


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"version": 1, "at": "x", "event": "running", "token": "0a"},
        {"version": 1, "at": "x", "event": "running", "token": "0a", "index": "0"},
        {"version": 1, "at": "x", "event": End.DONE.value, "token": "0a", "index": 0},
        {"version": 1, "at": "x", "event": "submitted", "token": "../x", "job_id": "1"},
    ],
    ids=str,
)
def test_nonsense_is_no_line(line: dict[str, Any]) -> None:
    assert errors(LEDGER, line)


JOB = {
    "version": 1,
    "token": "0a",
    "recipe": "/s/recipes/a.yaml",
    "points": [{"point_id": "a-c1", "concurrency": 1, "folder": "/s/points/a-c1"}],
    "launcher": {"kind": "command", "argv": ["true"], "environment": [["A", "1"]]},
    "time_minutes": 60,
    "max_runs": 3,
}
RESULT = {
    "version": 1,
    "token": "0a",
    "point_id": "a-c1",
    "concurrency": None,
    "status": "done",
    "reason": "",
    "exit_code": 0,
    "started": 1.5,
    "ended": 2.0,
    "job_id": "7_0",
    "run": 1,
    "nodes": ["n1"],
    "output": "/s/arrays/0a/jobs/00000/runs/7.0",
    "log_tail": "",
}
LAUNCHER: dict[str, Any] = {
    "kind": "srtctl",
    "checkout": "/c",
    "python": "/p",
    "config": None,
    "environment": [],
}


def written(folder: Path, name: str, document: dict[str, Any]) -> Path:
    (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_job_and_result_are_read(tmp_path: Path) -> None:
    job = read_job_file(written(tmp_path, "job.json", {**JOB, "launcher": LAUNCHER, "new": 1}))
    assert job.launcher == SrtctlLauncher(checkout=Path("/c"), python=Path("/p"))
    assert job.points[0].folder == Path("/s/points/a-c1")
    folder = tmp_path / "a-c1"
    folder.mkdir()
    found = read_result(written(folder, "result.json", RESULT))
    assert found is not None
    assert (found.nodes, found.concurrency) == (("n1",), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "is not version 1 of its format"),
        ({"launcher": {"kind": "shell"}}, "launcher.kind"),
        ({"launcher": {**LAUNCHER, "python": "bin/python"}}, "launcher.python"),
        ({"launcher": {**LAUNCHER, "environment": [["A"]]}}, "launcher.environment[0]"),
        ({"points": []}, "points"),
        ({"points": [{**JOB["points"][0], "point_id": "../a"}]}, "points[0].point_id"),  # type: ignore[index]
        ({"time_minutes": 1.5}, "time_minutes"),
        ({"recipe": None}, "recipe"),
    ],
    ids=str,
)
def test_nonsense_is_no_job(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_job_file(written(tmp_path, "job.json", {**JOB, **change}))
    (problem,) = refused.value.problems
    assert message in str(problem)
    assert problem.hint


@pytest.mark.parametrize("name", [name for name in RESULT if name != "version"])
def test_nonsense_is_no_result(tmp_path: Path, name: str) -> None:
    rest = {key: each for key, each in RESULT.items() if key != name}
    for document in (rest, {**RESULT, name: {}}):
        with pytest.raises(InvalidInput, match=f"(?s){name}.*delete it"):
            read_result(written(tmp_path, "result.json", document))
