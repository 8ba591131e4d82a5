"""What the commands of a sweep tell their user to do, and that doing it works."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from generator.cli.output import table
from generator.cli.sweep_sending import scripts_of
from generator.cluster.local import LocalCluster
from generator.cluster.protocol import ArrayRequest, NodeProblem
from generator.cluster.questions import refusal
from generator.errors import ClusterFailure, Problem
from generator.files import pasted
from generator.sweep.selection import never_sent
from generator.sweep.status_view import status_headers, status_rows
from tests.fake_cluster import FakeCluster
from tests.small_specs import run
from tests.small_sweeps import client, recipes, states, submit, sweep_folder
from tests.swept_recipes import edited
from tests.three_recipes import FAST, WORK, answer, write_three_recipes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three recipes, one of which fails under WORK."""
    return write_three_recipes(tmp_path, monkeypatch)


def point_states(sweep: str) -> dict[str, str]:
    points = json.loads(run("status", sweep, "--json").stdout)["points"]
    return {f"{each['recipe'][5:]}{each['concurrency']}": each["state"] for each in points}


def advised(lines: list[str], command: str) -> list[str]:
    """The words of the command that a line of advice begins with."""
    (line,) = [each for each in lines if each.startswith(f"pdrecipe {command} ")]
    words = shlex.split(line)
    return words[1 : words.index("sends")]


# --- paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [("a/b", "a/b"), ("a b", "'a b'"), ("-x", "./-x"), ("$(id)", "'$(id)'"), ("/", "/")],
)
def test_path_can_be_pasted(path: str, text: str) -> None:
    assert pasted(Path.cwd() / path) == text


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["my sweeps/one", "it's", "-x", "s;id"])
def test_what_follows_a_submission_can_be_pasted(name: str) -> None:
    words = ["submit", "recipes", "--cluster", "local", "--yes", "--name", "n"]
    lines = answer(*words, "--command", "true", f"--sweep={name}")
    assert lines[-2] == "Sent 3 jobs in 2 arrays; 2 jobs held until a canary has a result."
    command = shlex.split(lines[-1].partition(" follows them, and releases what is held.")[0])
    assert command[:3] == ["pdrecipe", "status", "--watch"]
    answer(*command[1:], "--every", "1")
    assert set(point_states(command[3]).values()) == {"done"}


# --- what to do next --------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_resume_is_advised_for_failures_and_takes_them() -> None:
    answer("submit", "recipes", *FAST, "--command", WORK, "--sweep", "my sweep", "--name", "n")
    words = advised(answer("status", "my sweep", code=10), "resume")
    assert words == ["resume", "my sweep"]
    assert "Left out: 3 done." in answer(*words, "--yes")


@pytest.mark.usefixtures("folder")
def test_retry_is_advised_for_what_the_user_cancelled_and_takes_it() -> None:
    words = ["--cluster", "local", "--no-canary", "--yes", "--sweep", "s"]
    answer("submit", "recipes", *words, "--command", "sleep 60")
    answer("cancel", "s", "--yes")
    lines = answer("status", "s", code=10)
    assert not [each for each in lines if each.startswith("pdrecipe resume")]
    assert answer("resume", "s", "--yes")[-1] == "Nothing to send."
    answer("submit", "s", "--command", "true", "--yes")
    command = advised(lines, "retry")
    assert command == ["retry", "POINT...", "--sweep", "s"]
    at = command.index("POINT...")
    named = ["tiny-a", "tiny-b", "tiny-c"]
    answer(*command[:at], *named, *command[at + 1 :], "--yes")
    answer("status", "s", "--watch", "--every", "1")
    assert set(point_states("s").values()) == {"done"}


def test_resume_is_advised_for_what_others_cancelled(tmp_path: Path) -> None:
    """An admin's scancel is nobody's wish here: resume takes such points."""
    from generator.sweep.selection import unfinished  # noqa: PLC0415
    from generator.sweep.status_view import advice  # noqa: PLC0415

    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, recipes(1))
    cluster.cancel([each.task_id for each in cluster.live()])
    with folder.locked():
        view = client(folder, cluster).refresh()
    assert {each.state.value for each in view.statuses} == {"cancelled"}
    assert advice(view, [], "s") == ["pdrecipe resume s sends what is missing, failed or lost"]
    assert all(unfinished(each) for each in view.statuses)


# --- a cluster that does not answer a cancellation --------------------------------------------


def test_cancellation_that_nobody_hears_is_recorded_and_carried_out(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, recipes(2))
    with folder.locked():
        work = client(folder, cluster)
        view = work.refresh()
        attempts = list(view.history.latest_attempts().values())
        cluster.silent = True
        with pytest.raises(ClusterFailure) as refused:
            work.cancel(attempts, "cancelled with pdrecipe cancel")
        cluster.silent = False
    (problem,) = refused.value.problems
    assert "scancel refused: no answer; the wish to cancel " in problem.message
    assert f"the next pdrecipe status {pasted(folder.root)} that gets an answer" in problem.hint
    with folder.locked():
        work = client(folder, cluster)
        before = work.look()
        assert {each.why for each in before.statuses} == {
            "cancelled with pdrecipe cancel; its job is not gone yet"
        }
        after = work.keep_up(before)
        assert not cluster.live()
        assert {each.why for each in work.look().statuses} == {"cancelled with pdrecipe cancel"}
    assert sum(states(after).values()) == 4


@pytest.mark.usefixtures("folder")
def test_cancellation_of_jobs_that_may_not_be_there_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client was cut off in sbatch, and nobody can say whether the array is there."""
    answer("submit", "recipes/c.yaml", *FAST, "--command", "true", "--sweep", "s")
    ledger = Path("s/ledger.jsonl")
    lines = ledger.read_text("ascii").splitlines(keepends=True)
    ledger.write_text("".join(lines[:2]), encoding="ascii")

    def silent(_cluster: LocalCluster, _name: str) -> str | None:
        raise ClusterFailure(Problem(message="squeue gave no answer in 60 s"))

    monkeypatch.setattr("generator.cluster.debug.DebugCluster.find", silent)
    result = run("cancel", "s", "--yes")
    assert result.exit_code == 5
    assert "nothing is cancelled or recorded" in result.stderr
    assert '"cancelled"' not in ledger.read_text("ascii")


# --- recipes that changed ---------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_changed_recipe_is_named_until_it_is_submitted() -> None:
    answer("submit", "recipes", *FAST, "--command", WORK, "--sweep", "s")
    path = Path("recipes/b.yaml")
    whole = path.read_text(encoding="utf-8")
    path.write_text("# reworded\n" + edited(whole, ("'13'", "'13x14'")), encoding="utf-8")
    assert "changed" not in run("status", "s").stderr
    path.write_text(edited(whole, ("'1:00:00'", "'2:00:00'")), encoding="utf-8")
    said = (
        "warning: changed since submission: recipes/b.yaml; the sweep goes on with its copies,"
        " pdrecipe submit FILE --sweep s adds what they hold now"
    )
    assert said in run("status", "s").stderr.splitlines()
    assert json.loads(run("status", "s", "--json").stdout)["changed"] == ["recipes/b.yaml"]
    assert said in run("resume", "s", "--yes").stderr.splitlines()
    answer("submit", "recipes/b.yaml", "--sweep", "s", "--yes")
    assert "changed" not in run("status", "s").stderr
    path.write_text("no recipe", encoding="utf-8")
    assert said in run("status", "s").stderr.splitlines()
    path.unlink()
    assert "changed" not in run("status", "s").stderr


@pytest.mark.usefixtures("folder")
def test_changed_recipe_is_looked_up_where_the_sweep_was_submitted(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer("submit", "recipes/b.yaml", *FAST, "--command", WORK, "--sweep", "s")
    sweep, path = Path("s").resolve(), Path("recipes/b.yaml").resolve()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "recipes").mkdir()
    (elsewhere / "recipes/b.yaml").write_text("another project's", encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    assert "changed" not in run("status", str(sweep)).stderr
    path.write_text("no recipe", encoding="utf-8")
    assert "changed since submission: recipes/b.yaml;" in run("status", str(sweep)).stderr


# --- settings that are broken -----------------------------------------------------------------


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "text",
    ["", "{", '{"version": 1}', "[" * 9999, '{"version": 1, "name": "s", "cluster": "moon"}'],
    ids=["empty", "torn", "no name", "deep", "no such cluster"],
)
def test_broken_settings_can_be_made_anew_as_the_hint_says(text: str) -> None:
    answer("submit", "recipes/a.yaml", *FAST, "--command", "true", "--sweep", "s")
    settings = Path("s/sweep.json")
    settings.write_text(text, encoding="utf-8")
    for words in (["status", "s"], ["resume", "s", "--yes"], ["submit", "recipes", "--sweep", "s"]):
        result = run(*words)
        assert (result.exit_code, result.stdout) == (3, ""), result.output
        assert "sweep.json: is broken: " in result.stderr
        assert "restore it from a copy; or remove it and submit" in result.stderr
        assert "--sweep s " in result.stderr
    settings.unlink()
    lines = answer("submit", "recipes", *FAST, "--command", "true", "--sweep", "s")
    assert "Left out: 2 done." in lines
    assert answer("status", "s") == ["4 points: 4 done."]


# --- folders of recipes -----------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_folder_with_recipes_further_down_names_them() -> None:
    for name in ("deep/v1/x", "deep/v2/y z", "deep/.git/w", "bare/x"):
        Path(name).mkdir(parents=True)
        if "bare" not in name:
            Path(name, "a.yaml").write_text("", encoding="utf-8")
    (line,) = run("submit", "deep", *FAST, "--command", "true").stderr.splitlines()
    assert line == (
        "error: deep: holds no recipes itself, only in folders below it"
        " (name those to send: deep/v1/x, 'deep/v2/y z')"
    )
    (line,) = run("submit", "bare", *FAST, "--command", "true").stderr.splitlines()
    assert line == "error: bare: holds no recipes (name files, or a folder of *.yaml files)"


# --- the table of points ----------------------------------------------------------------------


def test_ids_are_whole_and_reasons_too_when_all_is_listed(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    swept = recipes(2, loads="1x8192")
    reason = "a reason of many words " * 9
    cluster.fails[swept[0].points[0].id] = reason
    submit(folder, cluster, swept)
    cluster.run()
    with folder.locked():
        view = client(folder, cluster).refresh()
    for all_points in (False, True):
        rows = status_rows(view, all_points=all_points)
        text = table(status_headers(), rows, unbroken=1)
        shown = [each.point for each in view.statuses if each.point in text.split()]
        assert len(shown) == (4 if all_points else 1)
        assert max(map(len, text.splitlines())) <= 100
        words = " ".join(text.replace("|", " ").split())
        assert (reason.strip() in words) == all_points


# --- costs -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_costs_below_an_hour_are_no_zero() -> None:
    path = Path("recipes/c.yaml")
    path.write_text(edited(path.read_text("utf-8"), ("'1:00:00'", "'0:01:00'")), encoding="utf-8")
    words = ["recipes/c.yaml", "--cluster", "debug", "--command", "true"]
    lines = answer("submit", *words, "--dry-run")
    assert "at most 0.27 GPU-hours" in lines[3]
    assert "|      0.27 |" in lines[2]
    said = run("submit", *words, "--yes", "--max-gpu-hours", "0").stderr
    assert "the plan may cost 0.27 GPU-hours, more than --max-gpu-hours 0" in said


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e400"])
@pytest.mark.parametrize(
    "words", [["status", "s", "--watch", "--every"], ["submit", "s", "--max-gpu-hours"]]
)
def test_numbers_to_reckon_with_are_finite(words: list[str], number: str) -> None:
    result = run(*words, number)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for '--" in result.stderr


# --- closed streams and odd names -------------------------------------------------------------


def test_closed_stdin_is_a_no(folder: Path) -> None:
    words = ["submit", "recipes", "--cluster", "debug", "--command", "true"]
    command = [sys.executable, "-c", "from generator.cli import main; main()", *words]
    closed = f"{shlex.join(command)} <&-"
    said = subprocess.run(
        ["bash", "-c", closed], cwd=folder, capture_output=True, text=True, check=False
    )
    assert said.returncode == 10
    assert said.stderr.splitlines() == [
        "error: not confirmed, nothing was done (--yes answers without asking)"
    ]


@pytest.mark.usefixtures("folder")
def test_name_that_is_too_long_is_refused() -> None:
    long = "x" * 300
    for words in (["submit", "recipes", *FAST, "--command", "true", "--name", "n", "--sweep", long],
                  ["status", long], ["status", "--sweep", long]):  # fmt: skip
        result = run(*words)
        assert (result.exit_code, "the name is too long" in result.stderr) == (3, True)


@pytest.mark.usefixtures("folder")
def test_folder_that_is_no_sweep_is_named() -> None:
    assert run("status", "recipes").stderr.splitlines() == [
        "error: recipes: is not a sweep (name the folder that pdrecipe submit made)"
    ]
    answer("submit", "recipes/a.yaml", *FAST, "--command", "true", "--sweep", "s")
    for words in (["status", "s", "recipes"], ["resume", "s", "recipes"]):
        assert "recipes: is not a sweep" in run(*words).stderr
    assert run("status", "s", "--sweep", "s").exit_code == 2


# --- what Slurm says when it refuses ----------------------------------------------------------


LONG = ["abcdefgh" * 9 + letter for letter in "qrstuvw"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "it did not say why"),
        (["scancel: error: a", "scancel: error: b"], "error: a; error: b"),
        ([f"scancel: job {each}_1: no answer" for each in range(99)], "job 98_1: no answer"),
        ([*LONG, "why"], "; ".join([*LONG[2:], "why"])),
        (["x" * 500], "x" * 400),
    ],
    ids=["nothing", "two", "alike", "many", "long"],
)
def test_refusal_is_told_in_whole_lines(lines: list[str], said: str) -> None:
    (problem,) = refusal("scancel", "\n".join(lines)).problems
    assert problem.message == f"scancel refused: {said}"


# --- Ctrl-C -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["status", "s", "--watch"], ["logs", "tiny-c", "--sweep", "s", "-f"]]
)
def test_interrupted_command_ends_with_130(folder: Path, words: list[str]) -> None:
    submission = ["submit", "recipes/c.yaml", "--cluster", "local", "--yes", "--sweep", "s"]
    answer(*submission, "--command", "sh -c 'echo began; sleep 60'")
    command = [sys.executable, "-c", "from generator.cli import main; main()", *words]
    watching = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert watching.stderr is not None
    first = watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=50)
    assert first
    assert (watching.returncode, said.splitlines()[-1]) == (130, "interrupted")
    assert set(point_states("s").values()) == {"running"}
    answer("cancel", "s", "--yes")


@pytest.mark.usefixtures("folder")
def test_interruption_while_sending_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    send = LocalCluster.submit

    def interrupted(cluster: LocalCluster, request: object) -> object:
        send(cluster, request)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalCluster, "submit", interrupted)
    words = ["recipes", "--cluster", "local", "--yes", "--no-canary", "--sweep", "s"]
    result = run("submit", *words, "--command", "true")
    assert (result.exit_code, result.stdout.count("Sent")) == (130, 0)
    assert "cut off while sending; the rest: pdrecipe resume s" in result.stderr
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("interrupt", "code", "last"),
    [
        (True, 130, "interrupted"),
        (False, 10, "error: not confirmed, nothing was done (--yes answers without asking)"),
    ],
    ids=["Ctrl-C", "end of input"],
)
def test_question_without_an_answer(folder: Path, interrupt: bool, code: int, last: str) -> None:
    words = ["submit", "recipes", "--cluster", "local", "--command", "true", "--sweep", "s"]
    command = [sys.executable, "-c", "from generator.cli import main; main()", *words]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as asking:
        assert asking.stderr is not None
        question = ""
        while not question.endswith("[y/N]: "):
            question += asking.stderr.read(1)
        while interrupt and asking.poll() is None:
            asking.send_signal(signal.SIGINT)  # Python misses one that comes as it begins to read
            with suppress(subprocess.TimeoutExpired):
                asking.wait(5)
        _, said = asking.communicate(timeout=50)
    assert (asking.returncode, said.splitlines()[-1]) == (code, last)
    assert not Path("s").exists()


# --- answers that are not read to their end ---------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["submit", "--help"],
        ["submit", "recipes", *FAST, "--command", WORK, "--sweep", "s", "--dry-run"],
    ],
    ids=["help", "a command's help", "scripts"],
)
def test_closed_pipe_is_no_crash_and_leaves_nothing(folder: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    before = sorted(folder.rglob("*"))
    command = [sys.executable, "-c", "from generator.cli import main; main()", *words]
    ended = subprocess.run(
        command, cwd=folder, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")
    assert sorted(folder.rglob("*")) == before


def test_scripts_that_nobody_reads_leave_no_folder(tmp_path: Path) -> None:
    def closed(_text: str) -> None:
        raise BrokenPipeError

    work = client(sweep_folder(tmp_path), _Describing())
    swept = recipes(1)
    view = work.preview(swept)
    planned = work.plan(view, never_sent, swept)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BrokenPipeError):
        scripts_of(work, view, planned, closed)
    assert sorted(tmp_path.rglob("*")) == before


class _Describing(FakeCluster):
    """As submitit does, describing an array makes its folder."""

    def script(self, request: ArrayRequest) -> str:
        request.folder.mkdir(parents=True)
        return "script"


class _WithNodes(FakeCluster):
    """Says that it was asked for its nodes."""

    def node_problems(self) -> tuple[NodeProblem, ...]:
        return (NodeProblem(node="n07", state="down", reason="asked"),)


@pytest.mark.parametrize(("answers", "nodes"), [(True, ["n07"]), (False, [])])
def test_silent_cluster_is_not_asked_for_its_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool, nodes: list[str]
) -> None:
    """Each question to a controller that is gone takes ten seconds."""
    cluster = _WithNodes()
    folder = sweep_folder(tmp_path)
    submit(folder, cluster, recipes(1))
    cluster.queue_answers = answers
    monkeypatch.setattr("generator.cli.sweep_work.connect", lambda *_: cluster)
    found = json.loads(run("status", str(folder.root), "--json").stdout)
    assert [each["node"] for each in found["nodes"]] == nodes
