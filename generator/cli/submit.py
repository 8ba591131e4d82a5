"""pdrecipe submit: recipes to jobs on a cluster, recorded in a sweep folder."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import click

from generator.checks.report import text_lines
from generator.checks.rule import Severity
from generator.checks.run import check_recipes
from generator.cli.number import FiniteRange
from generator.cli.output import talk
from generator.cli.sweep_sending import (
    Say,
    answered,
    confirmed,
    demand_budget,
    demand_paths,
    scripts_of,
    sent,
    show_plan,
    speaker,
)
from generator.cli.sweep_work import (
    SWEEPS,
    NamedPath,
    dry_run_option,
    json_option,
    keep_others_out,
    new_client,
    preflight_option,
    refreshed,
    yes_option,
)
from generator.cluster.command import PLACEHOLDERS, command_problems
from generator.cluster.registry import CLUSTERS
from generator.errors import AnswerIsNo, InvalidInput, Problem
from generator.files import read_text
from generator.recipe.inputs import RecipeInputs
from generator.recipe.recipe import Dialect
from generator.site import Site, parse_site
from generator.sweep.client import SweepClient
from generator.sweep.directives import is_job_name
from generator.sweep.folder import (
    LAUNCHERS,
    SweepFolder,
    SweepSettings,
    create_sweep,
    is_sweep,
    open_sweep,
)
from generator.sweep.looking import Look
from generator.sweep.planning import Plan
from generator.sweep.recipe_files import common_name, read_recipes_to_send
from generator.sweep.selection import never_sent
from generator.sweep.site_use import ANY_SITE
from generator.sweep.submission_document import Submission
from generator.sweep.swept_recipe import SweptRecipe
from generator.wording import plural


@click.command()
@click.argument("what", metavar="SWEEP|SPEC|RECIPE...", nargs=-1, required=True,
                type=NamedPath())  # fmt: skip
@click.option(
    "--sweep",
    type=NamedPath(),
    help="Folder of the sweep, made if it is not there; sweeps/<what the names have in common>"
    " where absent.",
)
@click.option(
    "--dialect",
    type=click.Choice([dialect.value for dialect in Dialect]),
    default=Dialect.V2.value,
    show_default=True,
    help="Which recipes a SPEC stands for: the srt-slurm layout of --dialect in pdrecipe generate.",
)
@click.option("--name", help="Begins the names of its jobs; the folder's name where absent.")
@click.option(
    "--cluster",
    type=click.Choice(CLUSTERS),
    help="slurm, processes on this machine (local), or this process (debug).  [default: slurm]",
)
@click.option("--site", type=NamedPath(), help="Site file; the sweep keeps a copy.")
@click.option(
    "--launcher",
    type=click.Choice(LAUNCHERS),
    help="What a job runs: srt-slurm's orchestrator, --command, or pdrecipe rehearse."
    "  [default: srtctl]",
)
@click.option(
    "--command",
    help="For --launcher command: the command line, split as a shell would and run without one."
    f" Filled in: {', '.join(f'{{{each}}}' for each in PLACEHOLDERS)}. With {{concurrency}} it runs"
    " once for each load, otherwise once for all loads of a job.",
)
@click.option("--scale", type=click.IntRange(1), metavar="N",
              help="For --launcher rehearse: its --scale, one for all of a frontier; auto where"
              " absent, which differs.")  # fmt: skip
@click.option("--timing", metavar="mocker|roofline|RESULTS",
              help="For --launcher rehearse: its --timing; mocker where absent.")  # fmt: skip
@click.option("--cache", type=NamedPath(),
              help="For --launcher rehearse: its --cache, as every node finds it.")  # fmt: skip
@click.option("--max-parallel", type=click.IntRange(1), help="Jobs of the sweep that run at once.")
@click.option("--canary/--no-canary", default=None, help="One job of each configuration first.")
@click.option(
    "--stop-after",
    type=click.IntRange(0),
    metavar="K",
    help="Like failures after which waiting jobs are cancelled; 0: never.  [default: 5]",
)
@preflight_option
@click.option(
    "--max-gpu-hours",
    type=FiniteRange(0),
    help="Refuse a plan that may cost more.",
)
@dry_run_option
@yes_option
@json_option
def submit(
    *,
    what: tuple[Path, ...],
    sweep: Path | None,
    dialect: str,
    name: str | None,
    cluster: str | None,
    site: Path | None,
    launcher: str | None,
    command: str | None,
    scale: int | None,
    timing: str | None,
    cache: Path | None,
    max_parallel: int | None,
    canary: bool | None,
    stop_after: int | None,
    look_first: bool,
    max_gpu_hours: float | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Submit recipes, files or folders of them, as jobs of a sweep.

    A SPEC stands for the recipes that pdrecipe generate has written for it: those files are sent,
    as they were reviewed, and only while they are what the spec gives. A file with base or sweep
    is as many jobs as srtctl makes of it.

    Whatever a sweep has or had on its way is left out: pdrecipe resume takes up what failed or was
    lost. A SWEEP that is named keeps its settings unless an option changes them.

    Ctrl-C while jobs are sent ends with 130 and loses none: pdrecipe resume goes on. Of --cluster
    debug it ends the job that runs and cancels the rest, with 5.
    """
    keep_others_out()
    named = read_recipes_to_send((each for each in what if not is_sweep(each)), Dialect(dialect))
    _demand_sound(named.inputs)
    recipes = named.recipes
    root = _root(what, sweep, recipes)
    options = {
        "name": name,
        "cluster": cluster,
        "launcher": launcher or ("command" if command is not None else None),
        "command": _command(launcher, command),
        "scale": scale,
        "timing": _timing(timing),
        "cache": _cache(launcher, cache),
        "max_parallel": max_parallel,
        "canary": canary,
        "stop_after": stop_after,
        "has_site": True if site else None,
    }
    folder = SweepFolder(root=root.resolve())
    settings = _settings(folder, {key: each for key, each in options.items() if each is not None})
    if settings.launcher == "rehearse":
        _demand_rehearsable(recipes, settings)
    site_text = read_text(site, str(site)) if site else None
    client = new_client(folder, settings, _site(folder, site, site_text))
    view = client.preview(recipes)
    planned = client.plan(view, never_sent, recipes)
    say = speaker(as_json=as_json)
    show_plan(client, view, planned, say)
    demand_budget(planned, max_gpu_hours)
    submission = _submission(client, view, planned)
    if dry_run:
        submission = submission.dry(scripts_of(client, view, planned, say))
    elif planned.arrays:
        confirmed(f"Send {plural(len(planned.jobs), 'job')} to {settings.cluster}?", yes=yes)
        submission = _submit(client, recipes, site_text, max_gpu_hours, say, look_first=look_first)
    elif is_sweep(folder.root) and (site_text or settings != folder.read_settings()):
        with folder.locked():
            _keep(client, site_text)
        say("What is sent from now on is sent as you say.")
    answered(client, submission, as_json=as_json)


def _demand_sound(inputs: RecipeInputs) -> None:
    """The check that review uses: raises AnswerIsNo where a recipe has an error, and shows all."""
    result = check_recipes(inputs)
    if result.problems:
        raise InvalidInput(result.problems)
    errors = tuple(each for each in result.findings if each.rule.severity is Severity.ERROR)
    for line in text_lines(replace(result, findings=errors)):
        talk(line)
    if errors:
        raise AnswerIsNo(
            Problem(
                message=f"nothing is sent: {len(errors)} of the findings are errors",
                hint="mend them, or suppress a finding with its reason: pdrecipe explain",
            )
        )


def _demand_rehearsable(recipes: tuple[SweptRecipe, ...], settings: SweepSettings) -> None:
    """Raises InvalidInput for jobs that could only fail."""
    from generator.cli.rehearsal_plans import demand_rehearsable
    from generator.rehearsal.timing import TimingSource

    demand_rehearsable(recipes, settings.scale, settings.timing or TimingSource.MOCKER)


def _submit(
    client: SweepClient,
    recipes: tuple[SweptRecipe, ...],
    site_text: str | None,
    max_gpu_hours: float | None,
    say: Say,
    *,
    look_first: bool,
) -> Submission:
    """Make the sweep what was asked for and send what it lacks, alone."""
    folder = create_sweep(client.folder.root)
    with folder.locked():
        _keep(client, site_text)
        client.add(recipes)
        view = refreshed(client)
        planned = client.plan(view, never_sent)
        demand_budget(planned, max_gpu_hours)
        if look_first:
            demand_paths(client, planned)
        submission = _submission(client, view, planned)
        if not planned.arrays:
            say("Nothing to send: another client was here.")
            return submission
        return submission.after(sent(client, view, planned, say))


def _submission(client: SweepClient, view: Look, planned: Plan) -> Submission:
    waits_for = client.waited_for(view) if planned.arrays else ()
    return Submission(command="submit", plan=planned, look=view, waits_for=waits_for)


def _keep(client: SweepClient, site_text: str | None) -> None:
    """Keep how the sweep is submitted; the settings last, since they make it a sweep."""
    if site_text is not None:
        client.folder.write_site(site_text)
    client.folder.write_settings(client.settings)


def _root(what: tuple[Path, ...], sweep: Path | None, recipes: tuple[SweptRecipe, ...]) -> Path:
    """The folder of the sweep: --sweep, one that is named, or one by the recipes' names."""
    named = [each for each in what if is_sweep(each)]
    if len(named) > 1 or (named and sweep is not None):
        raise click.UsageError("name one sweep")
    if named or sweep is not None:
        return named[0] if named else sweep or SWEEPS
    return SWEEPS / common_name(recipes)


def _command(launcher: str | None, command: str | None) -> tuple[str, ...] | None:
    """The command line asked for; none for other launchers, and no word where nothing is asked."""
    if command is not None:
        return _words(command)
    return None if launcher in (None, "command") else ()


def _timing(timing: str | None) -> str | None:
    """The step times of rehearsals; a file of them as jobs elsewhere find it."""
    is_file = timing is not None and Path(timing).is_file()
    return str(Path(timing).absolute()) if timing is not None and is_file else timing


def _cache(launcher: str | None, cache: Path | None) -> str | None:
    """Where the environments of rehearsals lie, for jobs on other machines too."""
    if cache is None and launcher != "rehearse":
        return None
    from generator.rehearsal_host.environments import default_cache

    return str((cache or default_cache(os.environ)).absolute())


def _words(command: str) -> tuple[str, ...]:
    """The words of a command line, without a shell; the launcher fills the placeholders in."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise click.BadParameter(f"cannot be split: {error}", param_hint="--command") from error
    if problems := list(command_problems(words)):
        raise InvalidInput(problems)
    return words


def _site(folder: SweepFolder, site: Path | None, text: str | None) -> Site:
    """The site named now, else the one the sweep was submitted to before."""
    if text is not None:
        return parse_site(text, str(site))
    return (folder.read_site() if is_sweep(folder.root) else None) or ANY_SITE


def _settings(folder: SweepFolder, options: dict[str, object]) -> SweepSettings:
    """Those of the sweep, or the defaults, with what the command line says."""
    if is_sweep(folder.root):
        settings = open_sweep(folder.root).read_settings()
    else:
        settings = SweepSettings(name=folder.root.name)
    settings = replace(settings, **options)  # type: ignore[arg-type]
    if not is_job_name(settings.name):
        hint = "letters, digits, '.', '_', '+' and '-', at most 80; give --name"
        message = f"{settings.name[:40]!r} cannot begin the names of jobs"
        raise InvalidInput(Problem(message=message, hint=hint))
    if (settings.launcher == "command") != bool(settings.command):
        raise click.UsageError("--launcher command and --command go together")
    rehearsed = (settings.scale is not None, settings.timing, settings.cache)
    if settings.launcher != "rehearse" and any(rehearsed):
        raise click.UsageError("--scale, --timing and --cache go with --launcher rehearse")
    return settings
