"""pdrecipe logs: what a point's job has written."""

from __future__ import annotations

import time
from pathlib import Path

import click

from generator.cli.output import talk
from generator.cli.sweep_work import found_sweep, opened_client, sweep_option
from generator.errors import InvalidInput, Problem
from generator.files import os_problem
from generator.sweep.client import SweepClient
from generator.sweep.job_logs import job_logs
from generator.sweep.naming import named_points
from generator.sweep.status_view import moving_points

_LOOK_EVERY_S = 1.0
_ASK_EVERY_S = 10.0
_CHUNK_BYTES = 2**20


@click.command()
@click.argument("words", metavar="POINT", nargs=-1, required=True)
@sweep_option
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is over.")
@click.option("--attempt", type=click.IntRange(1), help="The n-th attempt, not the last.")
def logs(*, words: tuple[str, ...], sweep: Path | None, follow: bool, attempt: int | None) -> None:
    """Print the log of the job that ran POINT, its launcher's if that has begun."""
    folder, others = found_sweep(sweep, words)
    client = opened_client(folder)
    points = named_points(others, client.glance().history)
    if len(points) != 1:
        hint = "pdrecipe status names them"
        raise InvalidInput(Problem(message=f"name one point, not {len(points)}", hint=hint))
    _print(client, points[0], attempt, follow=follow)


def _print(client: SweepClient, point: str, number: int | None, *, follow: bool) -> None:
    attempts = client.glance().history.attempts(point)
    if not attempts or (number or 1) > len(attempts):
        message = f"{point} has {len(attempts)} attempts"
        raise InvalidInput(Problem(message=message, hint="pdrecipe status shows what was sent"))
    job = attempts[(number or 0) - 1]
    shown: Path | None = None
    offset, asked = 0, time.monotonic()
    while True:
        listed = job_logs(client.folder, job, point)
        if listed and listed[-1] != shown:
            shown, offset = listed[-1], 0
            talk(f"==> {shown}")
        if shown is not None:
            offset = _print_from(shown, offset)
        if not follow or (time.monotonic() - asked > _ASK_EVERY_S and _is_over(client, point)):
            break
        if time.monotonic() - asked > _ASK_EVERY_S:
            asked = time.monotonic()
        time.sleep(_LOOK_EVERY_S)
    if shown is None:
        talk("no log yet: the job has not begun")


def _print_from(path: Path, offset: int) -> int:
    """Print what a log has gained; where it ends now."""
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            while chunk := stream.read(_CHUNK_BYTES):
                click.echo(chunk.decode("utf-8", "replace"), nl=False)
            return stream.tell()
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error


def _is_over(client: SweepClient, point: str) -> bool:
    return point not in moving_points(client.glance())
