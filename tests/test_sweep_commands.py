"""submit, status, resume, cancel, retry and logs, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from generator.cluster.processes import start_time
from tests.small_specs import run
from tests.swept_recipes import edited
from tests.three_recipes import FAST, WORK, answer, write_three_recipes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three recipes, one of which fails under WORK."""
    return write_three_recipes(tmp_path, monkeypatch)


def refusal(result: Result, code: int) -> list[str]:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()


def document(*sweep: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("\n".join(answer("status", "--json", *sweep, code=code)))
    return found


def states() -> dict[str, str]:
    """State by recipe and load."""
    result = run("status", "--json")
    points = json.loads(result.stdout)["points"]
    return {f"{each['recipe'][5:]}{each['concurrency']}": each["state"] for each in points}


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*")}


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


# --- submit -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_plan_of_a_sweep() -> None:
    before = files()
    lines = answer("submit", "recipes", "--cluster", "local", "--command", WORK, "--dry-run")
    assert lines[2:7] == [
        "|     1 |    1 |      2 |     4 | 1:00:00    |       4 |        16 | at once |",
        "|     2 |    2 |      2 |     4 | 1:00:00    |       4 |        32 | held    |",
        "3 jobs in 2 arrays, 4 points, at most 48 GPU-hours, 12 nodes at once.",
        (
            "2 jobs wait until the first of their configuration has a result"
            " (--no-canary sends all at once)."
        ),
        "  4 points: never submitted",
    ]
    assert files() == before


@pytest.mark.usefixtures("folder")
def test_debug_plans_hold_nothing() -> None:
    lines = answer("submit", "recipes", "--cluster", "debug", "--command", WORK, "--dry-run")
    assert lines[2:5] == [
        "|     1 |    3 |      4 |     4 | 1:00:00    |       4 |        48 | at once |",
        "3 jobs in 1 array, 4 points, at most 48 GPU-hours, 12 nodes at once.",
        "  4 points: never submitted",
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_in_the_place_of_a_result(make: Callable[[Path], None]) -> None:
    """In a process of its own: opening a pipe would wait for a writer."""
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true")
    (result,) = Path("sweeps").rglob("result.json")
    result.unlink()
    make(result)
    start = "from generator.cli import main; main()"
    command = [sys.executable, "-c", start, "status", "--json"]
    status = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    (point,) = json.loads(status.stdout)["points"]
    assert point["state"] == "unknown"
    assert "result.json: is not a regular file" in point["why"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_debug_ends_the_launcher(folder: Path, number: signal.Signals) -> None:
    """The launcher and what it started are gone, the rest is not begun, and that is the reason."""
    code = "import os; print(os.getpid(), os.getppid(), file=open(f'{folder}/starts', 'a'))"
    script = folder / "napper.py"
    script.write_text(f"folder = {str(folder)!r}; {code}; import time; time.sleep(600)")
    # The shell, and a child that it waits for.
    command = f'sh -c "{sys.executable} {script}; true"'
    words = ["submit", "recipes", *FAST, "--command", command, "--sweep", "s"]
    client = subprocess.Popen(
        [sys.executable, "-c", "from generator.cli import main; main()", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    starts = folder / "starts"
    assert eventually(lambda: starts.exists() and starts.read_text().endswith("\n"), 40)
    client.send_signal(number)
    _, said = client.communicate(timeout=50)
    assert (client.returncode, f"interrupted by {number.name}" in said) == (5, True)
    assert [start_time(int(pid)) for pid in starts.read_text().split()] == [None, None]
    points = document("s", code=10)["points"]
    assert {each["state"] for each in points} == {"cancelled"}
    assert {each["why"] for each in points} == {f"interrupted: its client got {number.name}"}
    answer("submit", "s", "--command", "true", "--yes")
    answer("resume", "--sweep", "s", "--yes")
    assert document("s")["complete"]


@pytest.mark.usefixtures("folder")
def test_sweep_is_submitted_followed_and_resumed() -> None:
    lines = answer("submit", "recipes", *FAST, "--command", WORK)
    assert lines[-1] == (
        "Sent 3 jobs in 1 array; pdrecipe status --watch sweeps/tiny follows them."
    )
    assert states() == {"a1": "done", "a2": "done", "b13": "failed", "c4": "done"}
    found = document(code=10)
    assert (found["sweep"], found["complete"], found["counts"]["failed"]) == ("tiny", False, 1)
    (failed,) = [each for each in found["points"] if each["state"] == "failed"]
    assert failed["why"].endswith("ended with 1")
    assert "ran 13" in failed["log_tail"]

    assert answer("submit", "recipes", "--yes") == [
        "Left out: 3 done, 1 failed.",
        "Nothing to send.",
    ]
    lines = answer("resume", "--dry-run")
    assert lines[-3].startswith("# tiny.")
    lines = answer("resume", "--yes")
    assert "Left out: 3 done." in lines
    assert document(code=10)["points"][2]["attempts"] == 2


@pytest.mark.usefixtures("folder")
def test_all_done_is_exit_code_0() -> None:
    answer("submit", "recipes/a.yaml", "recipes/c.yaml", *FAST, "--command", "true")
    assert answer("status") == ["3 points: 3 done."]
    assert len(answer("status", "--all")) == 6
    assert document()["complete"] is True
    assert answer("resume", "--yes") == ["Left out: 3 done.", "Nothing to send."]


@pytest.mark.usefixtures("folder")
def test_canary_in_this_process() -> None:
    answer("submit", "recipes", "--cluster", "debug", "--yes", "--command", WORK)
    assert set(states().values()) == {"done", "failed"}


@pytest.mark.usefixtures("folder")
def test_reworded_recipe_resubmits_nothing() -> None:
    answer("submit", "recipes/a.yaml", *FAST, "--command", "true")
    path = Path("recipes/a.yaml")
    path.write_text("# by another version\n" + path.read_text("utf-8"), encoding="utf-8")
    assert answer("submit", "recipes/a.yaml", "--yes", "--sweep", "sweeps/tiny-a") == [
        "Left out: 2 done.",
        "Nothing to send.",
    ]


@pytest.mark.usefixtures("folder")
def test_more_loads_of_a_recipe_run_alone() -> None:
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    path = Path("recipes/c.yaml")
    path.write_text(edited(path.read_text("utf-8"), ("'4'", "4x8x16")), encoding="utf-8")
    lines = answer("submit", "recipes/c.yaml", "--yes", "--sweep", "s")
    assert lines[-1].startswith("Sent 1 job in 1 array")
    assert answer("status", "s") == ["3 points: 3 done."]
    tokens = [each["token"] for each in document("s")["points"]]
    assert tokens[0] != tokens[1] == tokens[2]


@pytest.mark.usefixtures("folder")
def test_without_a_yes_nothing_happens() -> None:
    before = files()
    result = run("submit", "recipes", "--cluster", "debug", "--command", WORK)
    assert result.exit_code == 10
    assert "error: not confirmed, nothing was done" in result.stderr
    assert files() == before


@pytest.mark.usefixtures("folder")
def test_plan_over_budget_is_refused() -> None:
    before = files()
    result = run("submit", "recipes", *FAST, "--command", WORK, "--max-gpu-hours", "47")
    assert result.exit_code == 10
    assert result.stderr.splitlines() == [
        (
            "error: the plan may cost 48 GPU-hours, more than --max-gpu-hours 47"
            " (nothing was sent; name fewer recipes, or allow more)"
        )
    ]
    assert files() == before


@pytest.mark.usefixtures("folder")
def test_every_problem_of_every_recipe_is_told() -> None:
    for name, edit in (("a", ("roles:", "rolls:")), ("c", ("'1:00:00'", "soon"))):
        path = Path(f"recipes/{name}.yaml")
        path.write_text(edited(path.read_text("utf-8"), edit), encoding="utf-8")
    lines = refusal(run("submit", "recipes", "nowhere.yaml", *FAST, "--command", WORK), 3)
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        "nowhere.yaml",
        "recipes/a.yaml:8",
        "recipes/c.yaml:3",
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["submit"], 2, "Missing argument 'SWEEP|SPEC|RECIPE...'"),
        (["submit", "recipes", "--launcher", "command"], 2, "go together"),
        (["submit", "recipes", "--command", "'"], 2, "cannot be split: No closing quotation"),
        (["submit", "recipes", "--command", "x {foo}"], 3, "has no placeholder {foo}"),
        (["submit", "recipes", "--cluster", "debug"], 3, "needs to know where srt-slurm lies"),
        (["submit", ".", "--command", "x"], 3,
         "holds no recipes itself, only in folders below it (name those to send: recipes)"),
        (["submit", "recipes", "--sweep", "recipes", "--cluster", "debug", "--command", "x",
          "--yes"], 3, "holds other files"),
        (["submit", "recipes", "--name", "a b", "--command", "x"], 3, "cannot begin the names"),
        (["status"], 3, "no sweep here (name its folder with --sweep: none under sweeps/)"),
        (["status", "recipes"], 3, "recipes: is not a sweep"),
        (["resume", "--sweep", "recipes"], 3, "recipes: is not a sweep"),
        (["logs"], 2, "Missing argument 'POINT'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_refusal(arguments: list[str], code: int, message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert message in result.stderr


def test_recipe_with_an_error_is_not_sent(folder: Path) -> None:
    """The check of reviews comes first: two recipes of one name are an error in a folder."""
    recipe = folder / "recipes" / "b.yaml"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace("tiny-b", "tiny-a"), encoding="utf-8")
    before = files()
    result = run("submit", "recipes", *FAST, "--command", WORK)
    assert result.exit_code == 10
    assert "error NAM001" in result.stderr
    assert "nothing is sent: " in result.stderr
    assert files() == before


@pytest.mark.usefixtures("folder")
def test_several_sweeps_must_be_told_apart() -> None:
    for name in ("a", "c"):
        answer("submit", f"recipes/{name}.yaml", *FAST, "--command", "true")
    (line,) = refusal(run("status"), 3)
    assert line == (
        "error: which sweep? (name its folder with --sweep: sweeps/tiny-a, sweeps/tiny-c)"
    )
    assert answer("status", "sweeps/tiny-a") == ["2 points: 2 done."]
    os.chdir("sweeps/tiny-c")
    assert answer("status") == ["1 point: 1 done."]


SITE = """\
version: 1
name: here
slurm: {account: mine, max_array_tasks: 2, directives: {nice: "5"}}
models: {m: %s}
"""


@pytest.mark.usefixtures("folder")
def test_site_file_and_preflight() -> None:
    here = Path.cwd()
    Path("site.yaml").write_text(SITE % (here / "model"), encoding="utf-8")
    words = ["submit", "recipes", *FAST, "--command", "true", "--site", "site.yaml", "--sweep", "s"]
    result = run(*words)
    assert result.exit_code == 3
    assert result.stderr.splitlines()[1:] == [
        (
            f"error: on a compute node: {here}/model: not on this node"
            " (nothing was sent; correct the site file, or --no-preflight)"
        )
    ]
    assert document("s", code=10)["counts"]["planned"] == 4
    Path("model").mkdir()
    lines = answer("submit", "s", "--yes")
    assert lines[-1].startswith("Sent 3 jobs in 2 arrays")
    Path("site.yaml").unlink()
    assert answer("status", "s") == ["4 points: 4 done."]
    first = Path("s/ledger.jsonl").read_text("ascii").splitlines()[1]
    asked = json.loads(first)["asked"]["parameters"]
    assert (asked["account"], asked["directives"]) == ("mine", [["nice", "5"]])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("site", "problem"),
    [
        (SITE.replace("nice", "array") % "/m", "slurm.directives.array: cannot be set here"),
        (SITE.replace('"5"', '"5 --uid=0"') % "/m", "slurm.directives.nice: '5 --uid=0' cannot be"),
        ("version: 2\n", "site.yaml:1: version: "),
    ],
    ids=["reserved", "two options in one", "version"],
)
def test_site_file_that_is_refused(site: str, problem: str) -> None:
    Path("site.yaml").write_text(site, encoding="utf-8")
    lines = refusal(run("submit", "recipes", *FAST, "--command", "true", "--site", "site.yaml"), 3)
    assert any(problem in line for line in lines), lines


# --- retry and logs ---------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_retry_of_failures_keeps_both_attempts() -> None:
    answer("submit", "recipes", *FAST, "--command", WORK)
    assert states()["b13"] == "failed"
    answer("retry", "--failed", "--yes")
    assert states()["b13"] == "failed"
    lines = answer("submit", "sweeps/tiny", "--command", "true", "--yes")
    assert lines[-1] == "What is sent from now on is sent as you say."
    answer("retry", "tiny-b", "--yes")
    assert set(states().values()) == {"done"}
    (point,) = Path("sweeps/tiny/points").glob("*-c13")
    assert len(list(point.glob("attempts/*.json"))) == 2
    assert refusal(run("retry"), 2)[-1] == "Error: name points, or give --failed"
    assert answer("retry", "tiny-b", "--yes") == ["Left out: 4 done.", "Nothing to send."]


@pytest.mark.usefixtures("folder")
def test_logs_of_a_point() -> None:
    answer("submit", "recipes", *FAST, "--command", WORK)
    result = run("logs", "tiny-b")
    assert (result.exit_code, result.stdout) == (0, "ran 13\n")
    assert result.stderr.startswith("==> ")
    assert refusal(run("logs", "tiny-a"), 3) == [
        "error: name one point, not 2 (pdrecipe status --all sweeps/tiny names them)"
    ]
    assert refusal(run("logs", "tiny-b", "--attempt", "2"), 3)[0].startswith("error: ")
    assert refusal(run("logs", "tiny-x"), 3) == [
        "error: no point 'tiny-x' in this sweep (did you mean 'tiny-c'?)"
    ]


# --- jobs that are on their way ---------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_watch_cancel_and_follow_on_this_machine() -> None:
    slow = 'sh -c "echo began {concurrency}; sleep 60"'
    quick = ["--cluster", "local", "--yes", "--no-canary"]
    answer("submit", "recipes/a.yaml", "recipes/c.yaml", *quick, "--command", slow, "--sweep", "s")
    assert eventually(lambda: "running" in status_of("s").values())
    assert run("status", "s").exit_code == 10
    lines = answer("cancel", "s", "tiny-a", "--yes")
    assert lines[-1] == "Cancelled 1 job with 2 points."
    answer("cancel", "s", "--yes")
    assert answer("cancel", "s", "--yes") == ["Nothing to cancel."]
    result = run("status", "s", "--watch", "--every", "1")
    assert result.stderr.splitlines()[-1] == "3 points: 3 cancelled"
    assert answer("resume", "s", "--yes") == ["Left out: 3 cancelled.", "Nothing to send."]
    answer("submit", "s", "--command", "true", "--yes")
    answer("retry", "s", "tiny-a", "tiny-c", "--yes")
    assert run("status", "s", "--watch", "--every", "1").exit_code == 0


def status_of(sweep: str) -> dict[str, str]:
    points = json.loads(run("status", sweep, "--json").stdout)["points"]
    return {each["point"]: each["state"] for each in points}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["{", '{"version": 1}'], ids=["not JSON", "no result"])
def test_watch_and_follow_end_at_a_result_that_cannot_be_read(text: str) -> None:
    """In processes of their own: they must not go on for ever."""
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    (result,) = Path("s").rglob("result.json")
    result.write_text(text, encoding="utf-8")
    start = "from generator.cli import main; main()"
    for words in (["status", "s", "--watch"], ["logs", "s", "tiny-c", "--follow"]):
        command = [sys.executable, "-c", start, *words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
        assert ended.returncode == (10 if "status" in words else 0), ended.stderr
        if "status" in words:
            assert f"{result.resolve()}: " in ended.stdout
            assert "(delete it, then pdrecipe resume s)" in ended.stdout


# --- a folder that cannot be written ----------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_second_client_is_refused_and_may_look() -> None:
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    from generator.sweep.folder import open_sweep  # noqa: PLC0415

    with open_sweep(Path("s")).locked():
        (line,) = refusal(run("resume", "s", "--yes"), 3)
        assert "is working on this sweep" in line
        result = run("status", "s")
        assert (result.exit_code, result.stdout) == (0, "1 point: 1 done.\n")
        assert "is working on this sweep" in result.stderr


@pytest.mark.usefixtures("folder")
def test_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    before = Path("s/ledger.jsonl").read_bytes()

    def refuse(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    result = run("submit", "recipes/a.yaml", "s", "--yes")
    assert result.exit_code == 3
    assert "no space left on the device (free some space; nothing was changed)" in result.stderr
    result = run("status", "s")
    assert (result.exit_code, result.stdout) == (0, "1 point: 1 done.\n")
    assert Path("s/ledger.jsonl").read_bytes() == before


@pytest.mark.usefixtures("folder")
def test_torn_ledger_is_named() -> None:
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    with Path("s/ledger.jsonl").open("ab") as stream:
        stream.write(b'{"version":1,"at":"20')
    result = run("status", "s")
    assert result.stdout == "1 point: 1 done.\n"
    assert "the last line is torn and ignored" in result.stderr


# --- what is gone -----------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_ledger_that_is_gone_sends_nothing() -> None:
    answer("submit", "recipes/a.yaml", *FAST, "--command", "true", "--sweep", "s")
    Path("s/ledger.jsonl").unlink()
    before = files()
    for words in (["status", "s"], ["resume", "s", "--yes"], ["submit", "recipes", "--sweep", "s"]):
        (line,) = refusal(run(*words), 3)
        assert "ledger.jsonl" in line
        assert "arrays/ and points/" in line
        assert "restore it from a copy" in line
    assert files() == before


@pytest.mark.usefixtures("folder")
def test_submission_that_was_cut_short_before_its_points() -> None:
    answer("submit", "recipes/a.yaml", *FAST, "--command", "true", "--sweep", "s")
    for name in ("arrays", "points"):
        shutil.rmtree(f"s/{name}")
    Path("s/ledger.jsonl").unlink()
    told = ["no points: the submission was cut short; submit the recipes again."]
    assert answer("status", "s", code=10) == told
    assert answer("resume", "s", "--yes", code=10) == told
    assert document("s", code=10)["complete"] is False
    answer("submit", "recipes/a.yaml", "--yes", "--sweep", "s")
    assert answer("status", "s") == ["2 points: 2 done."]


@pytest.mark.usefixtures("folder")
def test_site_file_that_is_gone_sends_nothing() -> None:
    site = Path("site.yaml")
    site.write_text("version: 1\nname: here\nslurm: {account: mine}\n", encoding="utf-8")
    answer("submit", "recipes", *FAST, "--command", WORK, "--sweep", "s", "--site", "site.yaml")
    Path("s/site.yaml").unlink()
    for words in (["resume", "s", "--yes"], ["submit", "recipes", "--sweep", "s", "--yes"]):
        (line,) = refusal(run(*words), 3)
        assert "site.yaml: is gone" in line
    answer("submit", "recipes", "--sweep", "s", "--yes", "--site", "site.yaml")
    assert Path("s/site.yaml").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("shape", ["truncated", "oversized", "folder"])
def test_result_that_cannot_be_read_says_what_to_do(shape: str) -> None:
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    (result,) = Path("s/points").glob("*/result.json")
    text = result.read_bytes()
    result.unlink()
    if shape == "folder":
        result.mkdir()
    else:
        result.write_bytes(text[:20] if shape == "truncated" else text + b" " * 2**23)
    told = answer("status", "s", code=10)
    (line,) = [each for each in told if str(result) in each]
    assert line.endswith("(delete it, then pdrecipe resume s)")
    result.rmdir() if shape == "folder" else result.unlink()
    answer("resume", "s", "--yes")
    assert answer("status", "s") == ["1 point: 1 done."]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", [["resume"], ["retry", "--failed"]], ids=["resume", "retry"])
def test_sites_paths_are_looked_for_before_anything_is_sent_again(words: list[str]) -> None:
    Path("site.yaml").write_text(SITE % (Path.cwd() / "model"), encoding="utf-8")
    Path("model").mkdir()
    answer("submit", "recipes", *FAST, "--command", WORK, "--site", "site.yaml", "--sweep", "s")
    Path("model").rmdir()
    result = run(*words, "--sweep", "s", "--yes")
    assert result.exit_code == 3
    assert "model: not on this node" in result.stderr
    assert [each["attempts"] for each in document("s", code=10)["points"]] == [1, 1, 1, 1]
    answer(*words, "--sweep", "s", "--yes", "--no-preflight")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["recipes", "--command", ""], 3, "the command is empty"),
        (
            ["recipes", "--command", "true", "--max-gpu-hours", "nan"],
            2,
            "nan is not a finite number",
        ),
        (["", "--command", "true"], 2, "the path is empty"),
        (["recipes", "--sweep", "", "--command", "true"], 2, "the path is empty"),
    ],
    ids=["command", "nan", "what", "sweep"],
)
def test_empty_words_are_refused(words: list[str], code: int, message: str) -> None:
    before = files()
    result = run("submit", "--cluster", "debug", "--yes", *words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert files() == before
