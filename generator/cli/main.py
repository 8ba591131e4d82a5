"""The pdrecipe command and how its errors end."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from generator import __version__
from generator.cli.output import nowhere, problem_lines, talk
from generator.errors import PdrecipeError

# Name -> module of the command function; a module is imported only when its command runs.
_COMMANDS = {
    "generate": "generator.cli.generate",
    "capacity": "generator.cli.capacity",
    "model": "generator.cli.model",
    "calibrate": "generator.cli.calibrate",
    "check": "generator.cli.check",
    "explain": "generator.cli.explain",
    "diff": "generator.cli.diff",
    "migrate": "generator.cli.migrate",
    "compose": "generator.cli.compose",
    "next": "generator.cli.next",
    "rehearse": "generator.cli.rehearse",
    "submit": "generator.cli.submit",
    "status": "generator.cli.status",
    "resume": "generator.cli.resume",
    "cancel": "generator.cli.cancel",
    "retry": "generator.cli.retry",
    "logs": "generator.cli.logs",
    "pareto": "generator.cli.pareto",
    "goodput": "generator.cli.goodput",
    "roofline": "generator.cli.roofline",
    "plan": "generator.cli.plan",
    "collect": "generator.cli.collect",
    "compare": "generator.cli.compare",
    "report": "generator.cli.report",
}


# What shells call 128 + SIGINT and 128 + SIGPIPE.
_INTERRUPTED = 130
_UNREAD = 141


class PdrecipeGroup(click.Group):
    """Loads commands late and turns every user error into its lines and its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(_COMMANDS[cmd_name]), cmd_name)
        return command if isinstance(command, click.Command) else None

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _as_far_as_read():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        as_json = _is_json_asked(ctx.args)
        try:
            with _as_far_as_read():
                return super().invoke(ctx)
        except PdrecipeError as error:
            _report(error, as_json=as_json)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            talk("interrupted")
            ctx.exit(_INTERRUPTED)


@contextmanager
def _as_far_as_read() -> Iterator[None]:
    """End quietly where whoever reads this has seen enough, as ``head`` does."""
    try:
        yield
    except BrokenPipeError:
        sys.stdout = sys.stderr = nowhere()
        raise click.exceptions.Exit(_UNREAD) from None


def _is_json_asked(arguments: Sequence[str]) -> bool:
    """Whether a command's answer was to be JSON, as ``--json`` or ``--format json``."""
    is_format = ("--format", "json") in itertools.pairwise(arguments)
    return is_format or not {"--json", "--format=json"}.isdisjoint(arguments)


def _report(error: PdrecipeError, *, as_json: bool) -> None:
    """The problems on stderr: lines for people, one document where the answer was to be JSON."""
    if not as_json:
        for line in problem_lines(error):
            talk(line)
        return
    problems = [
        {"message": problem.statement, "hint": problem.hint, "source": problem.source}
        | ({"line": problem.line} if problem.line else {})
        for problem in error.problems
    ]
    click.echo(json.dumps({"version": 1, "error": error.kind, "problems": problems}), err=True)


@click.group(cls=PdrecipeGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pdrecipe", message="%(prog)s %(version)s")
def main() -> None:
    """Capacity-exact prefill/decode recipes for vLLM under Dynamo, rendered for srt-slurm.

    Exit codes: 0 done, 2 usage, 3 invalid input, 4 nothing fits, 5 cluster, 10 the answer is no,
    130 interrupted (Ctrl-C), 141 the answer was not read to its end (a closed pipe).
    """
