"""The rack's command line: python -m tests.rack VERB."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

from tests.rack.layout import Layout, RackError, default_directory, saved_layout
from tests.rack.processes import start_time
from tests.rack.rack import Rack

_PART_VERBS = ("start", "stop", "kill", "lose")


def main() -> int:
    """Run one verb; the exit code."""
    arguments = _parser().parse_args()
    try:
        return _run(arguments)
    except RackError as error:
        sys.stderr.write(f"rack: {error}\n")
        return 1


def _run(arguments: argparse.Namespace) -> int:
    directory: Path = arguments.directory.absolute()
    verb: str = arguments.verb
    if verb == "up":
        return _up(directory, arguments)
    if verb == "watch":
        return _watch(directory, arguments.owner)
    if verb in {"down", "clean"} and saved_layout(directory) is None:
        return 0
    rack = Rack.at(directory)
    if verb == "env":
        for name, value in rack.layout.environment.items():
            sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    elif verb == "status":
        sys.stdout.writelines(f"{line}\n" for line in rack.status())
        return 0 if rack.is_up() else 1
    elif verb in _PART_VERBS:
        getattr(rack, verb)(arguments.part)
    else:
        {"down": rack.down, "clean": rack.clean, "resume": rack.resume_nodes}[verb]()
    return 0


def _up(directory: Path, arguments: argparse.Namespace) -> int:
    asked = Layout(
        directory=directory,
        name=arguments.name,
        racks=arguments.racks,
        nodes=arguments.nodes,
        port=arguments.port,
        accounting=not arguments.no_accounting,
        max_array_size=arguments.max_array_size,
        slurm=arguments.slurm.absolute() if arguments.slurm else None,
    )
    saved = saved_layout(directory)
    rack = Rack(saved if saved and Rack(saved).runs() else asked)
    sys.stderr.write(f"rack: {rack.up()}\n")
    if arguments.owner:
        watch = [sys.executable, "-m", "tests.rack", "--directory", str(directory), "watch"]
        subprocess.Popen(
            [*watch, "--owner", str(arguments.owner)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return 0


def _watch(directory: Path, owner: int) -> int:
    """Delete the rack once its owner has gone without doing so, killed for example."""
    started = start_time(owner)
    while start_time(owner) == started and started is not None:
        if saved_layout(directory) is None:
            return 0
        time.sleep(1)
    if saved_layout(directory) is not None:
        Rack.at(directory).clean()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.rack", description=__doc__)
    parser.add_argument("--directory", type=Path, default=default_directory())
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="install what is missing, start, wait for the nodes")
    up.add_argument("--name", default="gb300", help="the start of the node names")
    up.add_argument("--racks", type=int, default=1)
    up.add_argument("--nodes", type=int, default=18, help="nodes of each rack")
    up.add_argument("--port", type=int, default=16800, help="the first port on loopback")
    up.add_argument("--max-array-size", type=int, default=1001)
    up.add_argument("--no-accounting", action="store_true", help="a cluster without sacct")
    up.add_argument("--slurm", type=Path, help="a Slurm that tests.rack.slurm24 unpacked")
    up.add_argument("--owner", type=int, help="delete the rack when this process is gone")
    watch = verbs.add_parser("watch")
    watch.add_argument("--owner", type=int, required=True)
    for verb, text in (
        ("down", "stop everything; state and logs stay"),
        ("clean", "stop everything and delete the directory"),
        ("status", "what runs"),
        ("env", "lines for eval: what a client needs"),
        ("resume", "give drained and down nodes back, as an admin does"),
    ):
        verbs.add_parser(verb, help=text)
    for verb, text in (
        ("start", "start it again"),
        ("stop", "end it in an orderly way"),
        ("kill", "end it with SIGKILL; a node's jobs live on"),
        ("lose", "a node dies with everything that runs on it"),
    ):
        verbs.add_parser(verb, help=text).add_argument("part", help="slurmctld, slurmdbd or a node")
    return parser


if __name__ == "__main__":
    sys.exit(main())
