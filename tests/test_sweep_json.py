"""``--json`` of submit, resume, retry, cancel and logs: documents that their schemas accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generator.cluster.local import LocalCluster
from generator.errors import ClusterFailure, Problem
from generator.sweep.folder import open_sweep
from generator.validation import schema
from tests.small_specs import run
from tests.three_recipes import FAST, WORK, write_three_recipes

HELD = ["--cluster", "local", "--yes"]
SCHEMAS = {
    "submit": "submission",
    "resume": "submission",
    "retry": "submission",
    "status": "status",
    "cancel": "cancellation",
    "logs": "logs",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three recipes, one of which fails under WORK."""
    return write_three_recipes(tmp_path, monkeypatch)


def document(command: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The whole of stdout, which the command's schema accepts."""
    result = run(command, *arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    validator = Draft202012Validator(schema(SCHEMAS[command]))
    assert [error.json_path for error in validator.iter_errors(found)] == []
    return found


def refusal(command: str, *arguments: str, code: int) -> dict[str, Any]:
    """The document of an error: the last line of stderr, with nothing on stdout."""
    result = run(command, *arguments, "--json")
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    found: dict[str, Any] = json.loads(result.stderr.splitlines()[-1])
    return found


# --- what is sent -----------------------------------------------------------------------------


def test_submission_with_the_jobs_it_became() -> None:
    found = document("submit", "recipes", *FAST, "--command", WORK, "--sweep", "s")
    assert (found["command"], found["sent"], found["dry_run"]) == ("submit", True, False)
    assert (found["jobs"], found["points"], found["gpu_hours"]) == (3, 4, 48)
    (array,) = found["arrays"]
    assert [job["recipe"] for job in array["jobs"]] == ["tiny-a", "tiny-b", "tiny-c"]
    points = {each["point"]: each for each in document("status", "s", code=10)["points"]}
    for job in array["jobs"]:
        for point in job["points"]:
            known = points[point]
            assert (known["token"], known["job"]) == (array["token"], job["job"])
    assert array["job"] == array["jobs"][0]["job"].rpartition("_")[0]


def test_dry_run_holds_the_scripts_and_sends_nothing() -> None:
    words = ["recipes", "--cluster", "local", "--command", WORK, "--dry-run", "--max-parallel", "1"]
    found = document("submit", *words)
    assert (found["sent"], found["dry_run"], found["held_jobs"]) == (False, True, 2)
    first, second = found["arrays"]
    assert (first["after"], second["after"], second["held"]) == ([], [0], True)
    assert (first["token"], first["job"], first["jobs"][0]["job"]) == (None, None, None)
    assert all("generator.cluster.job" in each["script"] for each in found["arrays"])
    assert not Path("sweeps").exists()


def test_plan_screen_is_on_stderr() -> None:
    result = run("submit", "recipes", *FAST, "--command", WORK, "--json")
    assert "3 jobs in 1 array, 4 points" in result.stderr
    assert "Sent 3 jobs in 1 array; pdrecipe status --watch sweeps/tiny" in result.stderr


def test_nothing_to_send_is_a_document() -> None:
    document("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    for command, words in (
        ("submit", ["recipes/c.yaml", "--sweep", "s", "--yes"]),
        ("submit", ["s", "--command", "false", "--yes"]),
        ("resume", ["s", "--yes"]),
        ("retry", ["s", "--failed", "--yes"]),
    ):
        found = document(command, *words)
        assert (found["command"], found["sent"], found["arrays"]) == (command, False, [])
        assert found["left_out"]["done"] == 1


@pytest.mark.parametrize(("command", "more"), [("resume", []), ("retry", ["--failed"])])
def test_what_is_sent_again_says_why(command: str, more: list[str]) -> None:
    document("submit", "recipes", *FAST, "--command", WORK, "--sweep", "s")
    dry = document(command, "s", *more, "--dry-run")
    assert (dry["dry_run"], dry["arrays"][0]["token"]) == (True, None)
    found = document(command, "s", *more, "--yes")
    (array,) = found["arrays"]
    (job,) = array["jobs"]
    assert (found["command"], job["recipe"], found["sent"]) == (command, "tiny-b", True)
    assert job["why"].startswith("failed: ")
    assert found["left_out"]["done"] == 3
    (again,) = [each for each in document("status", "s", code=10)["points"] if each["attempts"] > 1]
    assert (again["token"], again["job"]) == (array["token"], job["job"])


def test_sweep_without_points_is_told_by_the_exit_code_too() -> None:
    document("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    Path("s/ledger.jsonl").unlink()
    for name in ("arrays", "points"):
        Path("s", name).rename(f"{name}-before")
    assert document("resume", "s", "--yes", code=10)["points"] == 0


# --- cancel and logs --------------------------------------------------------------------------


def test_cancelled_jobs_and_what_goes_with_them() -> None:
    words = ["--no-canary", "--command", "sleep 60", "--sweep", "s"]
    document("submit", "recipes", *HELD, *words)
    (named, beside) = [
        each["point"] for each in document("status", "s", code=10)["points"]
        if each["recipe"] == "tiny-a"
    ]  # fmt: skip
    found = document("cancel", named, "--sweep", "s", "--yes")
    (job,) = found["jobs"]
    assert (job["points"], found["beside"], job["recipe"]) == ([named, beside], [beside], "tiny-a")
    assert len(document("cancel", "s", "--yes")["jobs"]) == 2
    assert document("cancel", "s", "--yes")["jobs"] == []


def test_logs_as_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    document("submit", "recipes", *FAST, "--command", WORK, "--sweep", "s")
    document("retry", "s", "--failed", "--yes")
    found = document("logs", "tiny-b", "--sweep", "s")
    assert (found["text"], found["attempt"], found["attempts"]) == ("ran 13\n", 2, 2)
    assert Path(found["logs"][-1]).read_text("utf-8") == "ran 13\n"
    assert document("logs", "tiny-b", "--sweep", "s", "--attempt", "1")["attempt"] == 1
    monkeypatch.setattr("generator.sweep.logs_document.MOST_TEXT_BYTES", 3)
    cut = document("logs", "tiny-b", "--sweep", "s")
    assert (cut["text"], cut["skipped_bytes"]) == ("13\n", 4)


def test_logs_of_a_job_that_has_not_begun() -> None:
    document("submit", "recipes", *HELD, "--command", "sleep 60", "--sweep", "s")
    found = document("logs", "tiny-c", "--sweep", "s")
    assert (found["logs"], found["text"]) == ([], "")
    document("cancel", "s", "--yes")


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "arguments", "code", "message"),
    [
        ("submit", ["nowhere.yaml", *FAST, "--command", "true"], 3, "no such file"),
        ("submit", ["recipes", *FAST, "--command", "true", "--max-gpu-hours", "1"], 10, "may cost"),
        ("submit", ["recipes", "--cluster", "debug", "--command", "true"], 10, "not confirmed"),
        ("resume", ["--sweep", "recipes"], 3, "is not a sweep"),
        ("retry", ["tiny-x", "--sweep", "s", "--yes"], 3, "no point 'tiny-x' in this sweep"),
        ("cancel", ["tiny-x", "--sweep", "s", "--yes"], 3, "no point 'tiny-x' in this sweep"),
        ("logs", ["tiny-a", "--sweep", "s"], 3, "name one point, not 2"),
        ("logs", ["tiny-c", "--sweep", "s", "--attempt", "2"], 3, "has 1 attempt"),
        ("status", ["nowhere"], 3, "no sweep here"),
    ],
)
def test_error_leaves_stdout_empty(
    command: str, arguments: list[str], code: int, message: str
) -> None:
    if "s" in arguments:
        document("submit", "recipes", *FAST, "--command", "true", "--sweep", "s")
    if "nowhere" in arguments:
        arguments = []
    found = refusal(command, *arguments, code=code)
    assert found["version"] == 1
    assert message in found["problems"][0]["message"]


def test_logs_as_a_document_do_not_follow() -> None:
    result = run("logs", "x", "--json", "-f")
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("command", ["resume", "retry", "cancel"])
def test_second_client_gets_an_error_and_no_document(command: str) -> None:
    document("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    words = ["tiny-c"] if command == "retry" else []
    with open_sweep(Path("s")).locked():
        found = refusal(command, *words, "--sweep", "s", "--yes", code=3)
    assert "is working on this sweep" in found["problems"][0]["message"]
    assert "pdrecipe status s works meanwhile" in found["problems"][0]["hint"]


def test_cluster_that_refuses_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent before is in the ledger and thus in ``status --json``."""
    send = LocalCluster.submit

    def refuse(cluster: LocalCluster, request: Any) -> Any:
        if request.held:
            raise ClusterFailure(Problem(message="sbatch refused: no"))
        return send(cluster, request)

    monkeypatch.setattr(LocalCluster, "submit", refuse)
    found = refusal("submit", "recipes", *HELD, "--command", "true", "--sweep", "s", code=5)
    assert found["error"] == "cluster-failure"
    counts = document("status", "s", code=10)["counts"]
    assert counts["lost"] == 2
