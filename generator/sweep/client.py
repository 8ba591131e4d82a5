"""One client at work on a sweep: it looks, settles what another left behind, plans and sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.documents import parse_document
from generator.errors import ClusterFailure, InvalidInput, Problem
from generator.files import pasted, read_text, write_text_atomically
from generator.site import Site
from generator.sweep.acceptance import acceptance_problems
from generator.sweep.events import CancelledBy, Planned, PlannedRecipe
from generator.sweep.folder import SweepFolder, SweepSettings
from generator.sweep.history import Attempt, History, history
from generator.sweep.looking import Look, Progress, glance, look, unseen
from generator.sweep.planning import Plan, PlannedJob, plan, planned_job
from generator.sweep.selection import Choice, chosen
from generator.sweep.sending import Sender
from generator.sweep.site_use import placement_of
from generator.sweep.swept_recipe import SweptRecipe, swept_recipe
from generator.sweep.upkeep import duties, healthy_configurations, live_arrays, perform, put_down
from generator.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepClient:
    """Everything a command does to a sweep; the caller holds its lock."""

    folder: SweepFolder
    settings: SweepSettings
    site: Site
    sender: Sender
    say: Callable[[str], None]
    progress: Progress = unseen

    def glance(self) -> Look:
        """How the sweep stands, without recording it: for one that does not hold the lock."""
        return glance(self.folder, self.sender.cluster, progress=self.progress)

    def preview(self, recipes: Sequence[SweptRecipe]) -> Look:
        """How the sweep would stand with these recipes; nothing is written, not even the sweep."""
        known = history(self.folder.ledger.read().events)
        planned = [added_points(recipes, known)]
        return glance(self.folder, self.sender.cluster, planned, self.progress)

    def add(self, recipes: Sequence[SweptRecipe]) -> None:
        """Make recipes part of the sweep; a point it already has is not added again."""
        added = added_points(recipes, history(self.folder.ledger.read().events))
        for recipe in recipes:
            if not self.folder.recipe(recipe.digest).exists():
                write_text_atomically(self.folder.recipe(recipe.digest), recipe.text)
        if added.recipes:
            self.folder.ledger.append([added])

    def look(self) -> Look:
        """How the sweep stands; what is new is recorded."""
        return look(self.folder, self.sender.cluster, self.sender.pause, self.progress)

    def refresh(self) -> Look:
        """How the sweep stands, once what a killed client left open is settled.

        Raises ClusterFailure where something is open and the cluster does not answer.
        """
        view = self.look()
        unsure = [each for each in view.history.arrays.values() if each.submitted is None]
        for array in unsure:
            if array.is_open:
                self.sender.settle(array)
            else:
                self.sender.clear(array)
        return self.look() if unsure else view

    def keep_up(self, view: Look) -> Look:
        """Do what the sweep needs between submission and end, and look again if that was a lot."""
        due = duties(view, self.settings.stop_after)
        perform(self.folder, self.sender.cluster, due)
        for text in due.said:
            self.say(text)
        return self.look() if due.events else view

    def plan(self, view: Look, choice: Choice, recipes: Iterable[SweptRecipe] = ()) -> Plan:
        """What these points make: jobs, arrays, canaries.

        ``recipes`` are at hand; the others are read from the sweep. Raises InvalidInput where one
        cannot be placed on the site, or could not run on the cluster as it is; ClusterFailure where
        that does not answer.
        """
        at_hand = {recipe.digest: recipe for recipe in recipes}
        features = self.sender.cluster.features()
        placement = placement_of(self.site, features)
        wanted = chosen(view.statuses, choice)
        jobs: list[PlannedJob] = []
        problems: list[Problem] = []
        for recipe, points, why in _by_recipe(view.history, wanted):
            try:
                jobs.append(planned_job(self._job_of(recipe, at_hand), points, why, placement))
            except InvalidInput as error:
                problems += error.problems
        problems += acceptance_problems(jobs, features, self.folder.root)
        if problems:
            raise InvalidInput(problems)
        return plan(
            jobs,
            max_array_tasks=placement.max_array_tasks,
            max_parallel=self.settings.max_parallel,
            canary=self.settings.canary and features.holds,
            healthy=healthy_configurations(view.history),
        )

    def send(self, view: Look, planned: Plan, tick: Callable[[str], None]) -> None:
        """Send a plan that was made of this look."""
        after = self.waited_for(view)
        points = [point for job in planned.jobs for point in job.points]
        put_down(self.sender.cluster, view.history, points, self.sender.pause)
        self.sender.send(planned, tick, after)

    def waited_for(self, view: Look) -> tuple[str, ...]:
        """The arrays, by job id, that must be over before others start, so that the limit holds.

        Raises ClusterFailure where there is a limit and nobody says what still runs.
        """
        if not self.settings.max_parallel:
            return ()
        report = view.observation.report
        if report is None or not report.queue_answered:
            hint = "try again when the cluster answers"
            message = "what still runs is not known, so --max-parallel cannot be kept"
            raise ClusterFailure(Problem(message=message, hint=hint))
        return live_arrays(view.history, report)

    def cancel(self, attempts: Iterable[Attempt], why: str) -> None:
        """Cancel jobs for the user: recorded first, so that no later client takes them up.

        Raises ClusterFailure, saying that they are recorded, where the cluster does not take it;
        ``keep_up`` of a later client does it then.
        """
        listed = list(attempts)
        self.folder.ledger.append(
            event for attempt in listed for event in attempt.cancelled(why, CancelledBy.USER)
        )
        try:
            self.sender.cluster.cancel([each.task_id for each in listed if each.task_id])
        except ClusterFailure as failure:
            raise _only_recorded(failure, len(listed), self.folder) from failure

    def _job_of(self, recipe: PlannedRecipe, at_hand: Mapping[str, SweptRecipe]) -> SweptRecipe:
        """The recipe as a job; a rehearsal has the deployment on one node."""
        found = at_hand.get(recipe.digest) or self._stored(recipe)
        return found.on_one_node() if self.settings.launcher == "rehearse" else found

    def _stored(self, recipe: PlannedRecipe) -> SweptRecipe:
        """The recipe as the sweep keeps it, under the name the user knows."""
        path = self.folder.recipe(recipe.digest)
        found = swept_recipe(parse_document(read_text(path, str(path)), recipe.file))
        if found.digest != recipe.digest:
            hint = "put the file back as it was planned"
            message = f"is no longer the recipe {recipe.digest}"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(path)))
        return found


def _only_recorded(failure: ClusterFailure, jobs: int, folder: SweepFolder) -> ClusterFailure:
    """A cancellation that is in the ledger and not on the cluster yet."""
    (problem, *_) = failure.problems
    message = f"{problem.message}; the wish to cancel {plural(jobs, 'job')} is recorded"
    hint = (
        f"the next pdrecipe status {pasted(folder.root)} that gets an answer cancels what is left;"
        " until then they may start and run"
    )
    return ClusterFailure(Problem(message=message, hint=hint))


def added_points(recipes: Iterable[SweptRecipe], known: History) -> Planned:
    """What these recipes add to a sweep: each point once, whichever file names it first."""
    seen = set(known.points)
    planned = []
    for recipe in recipes:
        points = tuple(each.id for each in recipe.points if each.id not in seen)
        seen |= set(points)
        if points:
            planned.append(
                PlannedRecipe(
                    digest=recipe.digest,
                    name=recipe.name,
                    file=recipe.file,
                    points=points,
                    seen_from=str(Path.cwd()),
                )
            )
    return Planned(recipes=tuple(planned))


def _by_recipe(
    history: History, wanted: Mapping[str, str]
) -> Iterable[tuple[PlannedRecipe, list[str], str]]:
    """The points to send by recipe, with why; several reasons are told in one."""
    for recipe in history.recipes.values():
        points = [point for point in recipe.points if point in wanted]
        if points:
            reasons = dict.fromkeys(wanted[point] for point in points)
            yield recipe, points, "; ".join(reasons)
