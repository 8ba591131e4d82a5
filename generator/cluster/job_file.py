"""``job.json`` and ``result.json``: what a job is told, and what it says of each point.

Both are JSON, written atomically and checked against ``schemas/job.schema.json`` and
``schemas/result.schema.json`` when read; neither is ever unpickled. Paths in them are absolute.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from generator.documents import Document
from generator.errors import InvalidInput, Problem
from generator.files import read_text, write_text_atomically
from generator.validation import problems

JOB_FILE = "job.json"
RESULT_FILE = "result.json"
PROCESS_FILE = "process.json"
LAUNCHER_FILE = "launcher.json"
CLAIM_FILE = "token"
ATTEMPTS = "attempts"
DONE = "done"
FAILED = "failed"
VERSION = 1
_HINT = "delete it, then resume the sweep"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLauncher:
    """Runs any command.

    ``argv`` is an argument list, each item with placeholders in braces: ``{recipe}``, ``{output}``,
    ``{job_id}``, ``{nodes}``, ``{concurrencies}`` (joined by x). With ``{concurrency}`` the command
    is run once a point instead of once a job.
    """

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SrtctlLauncher:
    """Runs srt-slurm's orchestrator as its own job script does.

    ``checkout`` is the srt-slurm folder, ``python`` the interpreter that has its dependencies,
    ``config`` the site's srtslurm.yaml.
    """

    checkout: Path
    python: Path
    config: Path | None = None
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearseLauncher:
    """Runs the recipe's deployment with simulated engines.

    ``cache`` holds the environments that takes, as every node finds them; ``scale`` divides what
    is in flight, None to have that chosen. ``timing`` is where step times come from, empty for
    the command's default.
    """

    cache: Path
    scale: int | None = None
    timing: str = ""
    environment: tuple[tuple[str, str], ...] = ()


Launcher = CommandLauncher | SrtctlLauncher | RehearseLauncher


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPoint:
    """One point of a job: ``folder`` is where its result.json belongs, whichever job runs it.

    ``concurrency`` is None for a recipe that sweeps no load.
    """

    point_id: str
    concurrency: int | None
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """All that a job needs; ``max_runs`` bounds how often it may be started by requeues."""

    token: str
    recipe: Path
    points: tuple[JobPoint, ...]
    launcher: Launcher
    time_minutes: int
    max_runs: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """What became of one point; ``status`` is ``done`` or ``failed``, ``reason`` says why.

    ``started`` and ``ended`` are seconds since the epoch. ``run`` counts the starts of the job
    that ran it, from 1. ``output`` is the folder with what the launcher wrote, ``log_tail`` the
    end of the launcher's output when the point failed.
    """

    token: str
    point_id: str
    concurrency: int | None
    status: str
    reason: str
    exit_code: int | None
    started: float
    ended: float
    job_id: str
    run: int
    nodes: tuple[str, ...]
    output: str
    log_tail: str = ""


def write_job_file(folder: Path, job: JobFile) -> None:
    """Claim the job's points for its token, then write ``job.json``; folders are made if needed.

    A job of an earlier token, sent by a client that was killed and unknown ever since, finds its
    points claimed when it starts and leaves them alone.
    """
    for point in job.points:
        write_text_atomically(point.folder / CLAIM_FILE, f"{job.token}\n")
    launcher = {"kind": _KINDS[type(job.launcher)], **asdict(job.launcher)}
    document = {"version": VERSION, **asdict(job), "launcher": launcher}
    write_text_atomically(folder / JOB_FILE, json.dumps(document, default=str, indent=1) + "\n")


def read_job_file(folder: Path) -> JobFile:
    """The job of a folder; raises InvalidInput when it is missing or not as written."""
    document = _read(folder / JOB_FILE, "job")
    launcher = document["launcher"]
    return JobFile(
        token=document["token"],
        recipe=Path(document["recipe"]),
        points=tuple(
            JobPoint(
                point_id=point["point_id"],
                concurrency=point["concurrency"],
                folder=Path(point["folder"]),
            )
            for point in document["points"]
        ),
        launcher=_READERS[launcher["kind"]](launcher),
        time_minutes=document["time_minutes"],
        max_runs=document["max_runs"],
    )


def is_claimed_by_another(job: JobFile, point: JobPoint) -> bool:
    """Whether a later submission has taken the point over."""
    path = point.folder / CLAIM_FILE
    return path.exists() and read_text(path, str(path)).strip() != job.token


def write_result(point: JobPoint, result: PointResult) -> None:
    """Write a point's ``result.json``; readers see none, or all of it.

    The result of an earlier attempt stays, as ``attempts/<its token>.json``.
    """
    earlier = read_result(point.folder)
    if earlier is not None and earlier.token != result.token:
        _write(point.folder / ATTEMPTS / f"{earlier.token}.json", earlier)
    _write(point.folder / RESULT_FILE, result)


def _write(path: Path, result: PointResult) -> None:
    document = {"version": VERSION, **asdict(result)}
    write_text_atomically(path, json.dumps(document, indent=1) + "\n")


def read_result(folder: Path) -> PointResult | None:
    """The result in a point's folder, None when there is none yet.

    Raises InvalidInput for a file that is not a result, or the one of a point whose folder is named
    otherwise: it is never taken for one, nor for none.
    """
    path = folder / RESULT_FILE
    if not path.exists():
        return None
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            raise _broken(path, "is not a regular file")
        document = _read(path, "result")
        if document["point_id"] != folder.name:
            raise _broken(path, f"is the result of point {document['point_id']!r}, not of this one")
    except InvalidInput as error:
        raise InvalidInput(replace(each, hint=_HINT) for each in error.problems[:1]) from error
    fields = {name: document[name] for name in PointResult.__dataclass_fields__}
    return PointResult(**{**fields, "nodes": tuple(document["nodes"])})


def _command(fields: dict[str, Any]) -> Launcher:
    return CommandLauncher(
        argv=tuple(fields["argv"]), environment=_environment(fields["environment"])
    )


def _srtctl(fields: dict[str, Any]) -> Launcher:
    return SrtctlLauncher(
        checkout=Path(fields["checkout"]),
        python=Path(fields["python"]),
        config=Path(fields["config"]) if fields["config"] is not None else None,
        environment=_environment(fields["environment"]),
    )


def _rehearse(fields: dict[str, Any]) -> Launcher:
    return RehearseLauncher(
        cache=Path(fields["cache"]),
        scale=fields["scale"],
        timing=fields["timing"],
        environment=_environment(fields["environment"]),
    )


def _environment(pairs: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in pairs)


_KINDS: dict[type, str] = {
    CommandLauncher: "command",
    SrtctlLauncher: "srtctl",
    RehearseLauncher: "rehearse",
}
_READERS = {"command": _command, "srtctl": _srtctl, "rehearse": _rehearse}


def _read(path: Path, schema_name: str) -> dict[str, Any]:
    """A JSON object that its schema accepts; any other file is refused as a whole."""
    text = read_text(path, str(path))
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise _broken(path, "is not JSON") from error
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise _broken(path, f"is not version {VERSION} of its format")
    document = Document(source=str(path), text=text, data=data, lines={})
    if found := problems(document, schema_name):
        raise InvalidInput(replace(each, hint=each.hint or _HINT) for each in found)
    return data


def _broken(path: Path, message: str) -> InvalidInput:
    return InvalidInput(Problem(message=message, hint=_HINT, source=str(path)))
