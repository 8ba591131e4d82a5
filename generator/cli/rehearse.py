"""pdrecipe rehearse: a recipe's deployment as real processes, without GPUs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from generator.cli.output import definitions, echo, paragraph, table, talk
from generator.cli.progress import is_watched, progress, show_line
from generator.cli.rehearsal_plans import planned_rehearsal
from generator.cli.sweep_work import NamedPath
from generator.documents import read_document
from generator.errors import AnswerIsNo, ClusterFailure, InvalidInput, Problem
from generator.files import write_text_atomically
from generator.rehearsal.document import rehearsal_document
from generator.rehearsal.plan import CapacityShare, RehearsalPlan
from generator.rehearsal.timing import Timing, TimingSource
from generator.rehearsal.verdict import RehearsedLoad, Verdict, all_hold, verdicts
from generator.rehearsal.view import HEADERS, load_row, notes, summary_rows, verdict_lines
from generator.rehearsal_host.run_folder import RehearsalFolder
from generator.results.point import Origin
from generator.results.wording import origins_label
from generator.sweep.swept_recipe import SweptRecipe, swept_recipes

REHEARSALS = Path("rehearsals")
FIGURE = "rehearsal.svg"
_LOAD = re.compile(r"(?P<number>[1-9][0-9]{0,7})(?P<percent>%)?\Z")

Loads = tuple[int | CapacityShare, ...]


def _loads(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Loads:
    """Concurrencies and shares of the capacity, by repeating the option, commas or ``64x128``."""
    return tuple(_load_of(word) for value in values for word in re.split("[,x]", value))


def _load_of(word: str) -> int | CapacityShare:
    match = _LOAD.match(word.strip())
    if match is None:
        raise click.BadParameter(f"{word!r} is no concurrency such as 64, or 150%")
    number = int(match["number"])
    return CapacityShare(percent=number) if match["percent"] else number


def _scale(_: click.Context, __: click.Parameter, value: str) -> int | None:
    """The divisor of what is in flight; None to have it chosen."""
    if value == "auto":
        return None
    if not re.fullmatch("[1-9][0-9]{0,5}", value):
        raise click.BadParameter(f"{value!r} is neither auto nor a number from 1")
    return int(value)


@click.command()
@click.argument("recipe", type=NamedPath(), required=False)
@click.option("--scale", default="auto", show_default=True, callback=_scale, metavar="auto|N",
              help="Divide what is in flight by N; auto: so that two cores carry it.")  # fmt: skip
@click.option(
    "--concurrency",
    "wanted",
    multiple=True,
    callback=_loads,
    metavar="N|N%,...",
    help="Loads instead of the recipe's; 150% is of the requests that decode's KV cache holds.",
)
@click.option(
    "--timing",
    "source",
    default=TimingSource.MOCKER.value,
    show_default=True,
    metavar="mocker|roofline|RESULTS",
    help="Step times: the mocker's own, or, to see whether prefill keeps up with decode, bounds of"
    " the recipe's GPUs or the measured points in a file of pdrecipe collect.",
)
@click.option("--out", type=NamedPath(), help="Folder of results and logs; rehearsals/<recipe>.")
@click.option("--setup", is_flag=True, help="Install Dynamo and AIPerf first, about 1.9 GB.")
@click.option("--cache", type=NamedPath(), help="Where they are; ~/.cache/pdrecipe/rehearsal.")
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
def rehearse(
    *,
    recipe: Path | None,
    scale: int | None,
    wanted: Loads,
    source: str,
    out: Path | None,
    setup: bool,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Run the deployment of RECIPE on this machine, scaled down, with simulated engines.

    Dynamo's frontend and mockers and AIPerf run in a closed network of their own. The folder is
    one for pdrecipe collect; loads that it has already are not run again.

    Exit codes: 0 every load is taken, 10 one is not, 3 invalid recipe, 5 it cannot run here.
    """
    from generator.rehearsal_host.environments import default_cache

    folder = (cache or default_cache(os.environ)).absolute()  # programs run in another folder
    if setup:
        _set_up(folder)
    if recipe is None:
        if not setup:
            raise click.UsageError("name a recipe, or --setup")
        return
    swept = _only_job(recipe)
    plan, timing = planned_rehearsal(swept, wanted, scale, source)
    where = out or REHEARSALS / recipe.stem
    results = RehearsalFolder(root=where, plan=plan, timing=timing)
    found = _rehearsed(swept, results, folder)
    judged = verdicts(plan, found, timing)
    _draw(results, found, judged)
    if as_json:
        document = rehearsal_document(
            plan,
            found,
            judged,
            digest=swept.digest,
            timing=timing,
            folder=str(where),
        )
        echo(json.dumps(document, indent=2))
    else:
        _show(plan, timing, found, judged, where)
    if not all_hold(judged):
        click.get_current_context().exit(AnswerIsNo.exit_code)


def _set_up(folder: Path) -> None:
    from generator.rehearsal_host.installation import set_up

    set_up(folder, talk, progress)


def _only_job(recipe: Path) -> SweptRecipe:
    """The one job that a recipe file makes; raises InvalidInput for several."""
    jobs = swept_recipes(read_document(recipe))
    if len(jobs) > 1:
        message = f"makes {len(jobs)} jobs, and a rehearsal is of one"
        hint = "rehearse a file that makes one, or all with pdrecipe submit --launcher rehearse"
        raise InvalidInput(Problem(message=message, hint=hint, source=str(recipe)))
    return jobs[0]


def _rehearsed(
    recipe: SweptRecipe, folder: RehearsalFolder, cache: Path
) -> tuple[RehearsedLoad, ...]:
    from generator.rehearsal_host.environments import find_environments
    from generator.rehearsal_host.rehearse import rehearse as run_rehearsal
    from generator.rehearsal_host.supervisor import Interrupted

    environments = find_environments(cache)
    if environments is None:
        hint = "pdrecipe rehearse --setup installs them, about 1.9 GB and some minutes"
        message = f"Dynamo and AIPerf are not installed in {cache}"
        raise ClusterFailure(Problem(message=message, hint=hint))
    try:
        with folder.claimed(recipe), _saying() as say:
            return run_rehearsal(folder, environments, say)
    except Interrupted as interrupted:
        talk(f"{interrupted}; the same command goes on after the loads that {folder.root} has")
        raise


def _draw(
    folder: RehearsalFolder, found: tuple[RehearsedLoad, ...], judged: tuple[Verdict, ...]
) -> None:
    """The picture beside the results, of what lies in the folder."""
    from generator.figures.drawing import draw_svg
    from generator.rehearsal.chart import LoadOverTime, rehearsal_chart

    loads = [
        LoadOverTime(rehearsed=each, verdict=verdict, samples=folder.samples(each.load))
        for each, verdict in zip(found, judged, strict=True)
    ]
    write_text_atomically(folder.root / FIGURE, draw_svg(rehearsal_chart(folder.plan, loads)))


@contextmanager
def _saying() -> Iterator[Callable[[str], None]]:
    """How far the work is: on one line of a terminal, elsewhere a line as a stage begins."""
    if not is_watched():
        stages: list[str] = []

        def tell(text: str) -> None:
            stage = text.partition(":")[0]
            if stages[-1:] != [stage]:
                stages.append(stage)
                talk(stage)

        yield tell
        return
    try:
        yield show_line
    finally:
        show_line("")


def _show(
    plan: RehearsalPlan,
    timing: Timing,
    found: tuple[RehearsedLoad, ...],
    judged: tuple[Verdict, ...],
    where: Path,
) -> None:
    echo(origins_label([Origin.REHEARSAL]))
    echo(definitions(summary_rows(plan, timing.label)))
    echo()
    rows = [load_row(each, verdict) for each, verdict in zip(found, judged, strict=True)]
    echo(table(HEADERS, rows))
    echo()
    for line in (*verdict_lines(found, judged), *notes(plan)):
        paragraph(line)
    echo()
    paragraph(f"Results, logs and {FIGURE}: {where}. Next: pdrecipe collect {where}")
