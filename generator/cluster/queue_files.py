"""The files of an array that runs on this machine: its queue, what happened, what was asked.

``queue.json`` lists the jobs, ``events.jsonl`` their starts and ends as the runner sees them,
``runner.json`` says which process that is, and ``runner.log`` is what it printed. A client asks by
making files: ``released``, and ``cancel/<index>``.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from generator.cluster.job_file import LAUNCHER_FILE, PROCESS_FILE
from generator.cluster.processes import end_session, note_process, noted_process, noted_session
from generator.files import read_text, write_text_atomically

QUEUE_FILE = "queue.json"
EVENTS_FILE = "events.jsonl"
RUNNER_FILE = "runner.json"
RUNNER_LOG = "runner.log"
RELEASED_FILE = "released"
CANCEL_FOLDER = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The jobs of a local array, how many run at once, and how long each may take.

    ``after`` are tokens of arrays that must be over first.
    """

    jobs: tuple[Path, ...]
    max_parallel: int
    time_minutes: int
    held: bool
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEvent:
    """A job began, or it ended: ``exit_code`` is None while it runs, negative for a signal.

    ``why`` says more of a cancellation, where there is more to say.
    """

    index: int
    exit_code: int | None = None
    cancelled: bool = False
    time_limit: bool = False
    why: str = ""


def write_queue(folder: Path, queue: Queue) -> None:
    """Write ``queue.json``."""
    text = json.dumps(asdict(queue), default=str, indent=1) + "\n"
    write_text_atomically(folder / QUEUE_FILE, text)


def read_queue(folder: Path) -> Queue:
    """The queue of an array's folder; raises InvalidInput when it is not there."""
    path = folder / QUEUE_FILE
    document = json.loads(read_text(path, str(path)))
    jobs = tuple(Path(job) for job in document.pop("jobs"))
    after = tuple(document.pop("after", ()))
    return Queue(jobs=jobs, after=after, **document)


def note_event(folder: Path, event: QueueEvent) -> None:
    """Append an event; one write, so that no reader sees half of it."""
    with (folder / EVENTS_FILE).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(event)) + "\n")


def read_events(folder: Path) -> dict[int, QueueEvent]:
    """The last event of every job that has begun."""
    path = folder / EVENTS_FILE
    if not path.exists():
        return {}
    events = (QueueEvent(**json.loads(line)) for line in read_text(path, str(path)).splitlines())
    return {event.index: event for event in events}


def note_runner(folder: Path) -> None:
    """Say that this process runs the array."""
    note_process(folder / RUNNER_FILE, os.getpid())


def is_run(folder: Path) -> bool:
    """Whether the process that runs the array is still there."""
    return noted_process(folder / RUNNER_FILE) is not None


def is_left_running(job: Path) -> bool:
    """Whether processes of a job are there, be its runner alive or not."""
    return (
        noted_process(job / PROCESS_FILE) is not None
        or noted_session(job / LAUNCHER_FILE) is not None
    )


def end_left_running(job: Path) -> None:
    """End a job that has no runner any more: its process passes it on, if that still lives."""
    process, session = noted_process(job / PROCESS_FILE), noted_session(job / LAUNCHER_FILE)
    if process is not None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    elif session is not None:
        end_session(session, signal.SIGKILL)


def ask_to_cancel(folder: Path, index: int) -> None:
    """Leave the runner a note to end a job, or not to start it."""
    (folder / CANCEL_FOLDER).mkdir(exist_ok=True)
    (folder / CANCEL_FOLDER / str(index)).touch()


def is_cancelled(folder: Path, index: int) -> bool:
    """Whether a job is to end."""
    return (folder / CANCEL_FOLDER / str(index)).exists()
