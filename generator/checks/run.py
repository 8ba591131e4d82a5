"""Checking recipes: every rule on every job, findings summed up by file and suppressed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.architecture import ModelArchitecture
from generator.checks.engines import has_memory_modelled
from generator.checks.finding import CheckResult, Finding
from generator.checks.job import Job, make_job
from generator.checks.known_models import model_of
from generator.checks.registry import JOB_RULES, MEMORY, RULES
from generator.checks.rule import Hit, JobRule, Rule
from generator.checks.settings import AllowedFindings, settings_for
from generator.checks.siblings import gather_siblings
from generator.checks.suppressions import UNUSED, names, suppress
from generator.errors import InvalidInput, Problem
from generator.normal_form import normal_form
from generator.recipe.expansion import Variant, all_variants
from generator.recipe.inputs import RecipeFile, RecipeInputs
from generator.recipe.sources import RecipeSource
from generator.wording import did_you_mean, shown

_KNOWN_IDS = frozenset(rule.id for rule in RULES)
_KNOWN_NAMES = _KNOWN_IDS | frozenset(rule.family for rule in RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rules to run, by id or by the letters of a family; empty ``select`` means all."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = [each for each in (*self.select, *self.ignore) if each not in _KNOWN_NAMES]
        if unknown:
            raise InvalidInput(
                Problem(
                    message=f"there is no rule {shown(each)}",
                    hint=did_you_mean(each, _KNOWN_NAMES) or "pdrecipe explain lists all",
                )
                for each in unknown
            )

    def has(self, rule: Rule) -> bool:
        """Whether a rule is to run."""
        names = {rule.id, rule.family}
        return (not self.select or not names.isdisjoint(self.select)) and names.isdisjoint(
            self.ignore
        )


_ALL_RULES = Selection()


def check_recipes(
    inputs: RecipeInputs,
    *,
    folder: Path = Path(),
    model: ModelArchitecture | None = None,
    selection: Selection = _ALL_RULES,
) -> CheckResult:
    """Every finding in the recipes, summed up over the variants of a file.

    ``model`` replaces what the recipes name. Relative names are the folder's, as are the
    configuration files looked for. Files that cannot be expanded are among the problems of the
    answer. Raises InvalidInput for a configuration file that is not valid.
    """
    problems = list(inputs.problems)
    expanded: list[tuple[RecipeFile, tuple[Variant, ...]]] = []
    for file in inputs.recipes:
        try:
            expanded.append((file, all_variants(file.document)))
        except InvalidInput as error:
            problems += error.problems
    siblings = gather_siblings(expanded)
    rules = [rule for rule in JOB_RULES if selection.has(rule)]
    not_run = _KNOWN_IDS - {rule.id for rule in rules}
    settings = _Settings(folder=folder)
    found: list[Finding] = []
    without_memory: list[str] = []
    needs_memory = any(rule.family == MEMORY for rule in rules)
    for file, jobs in expanded:
        summary = _Summary(file=file, of_variants=len(jobs))
        for variant in jobs:
            form = normal_form(variant)
            job = make_job(file, form, model or model_of(form), siblings)
            summary.add(variant, findings_of_job(job, rules))
            summary.has_memory &= not needs_memory or has_memory_modelled(job)
        if not summary.has_memory:
            without_memory.append(file.source.name)
        own = summary.findings
        judged = suppress(own, file.document, settings.of(file.source), not_run, _KNOWN_NAMES)
        found += sorted(judged, key=lambda each: (each.line, each.rule.id, each.path))
    found += settings.unused(found, not_run)
    selected = [each for each in found if selection.has(each.rule)]
    return CheckResult(
        findings=tuple(each for each in selected if each.reason is None),
        suppressed=tuple(each for each in selected if each.reason is not None),
        problems=tuple(problems),
        skipped=inputs.skipped,
        files=len(expanded),
        variants=sum(len(jobs) for _, jobs in expanded),
        without_memory=tuple(without_memory),
    )


def findings_of_job(
    job: Job, rules: Iterable[JobRule] = JOB_RULES
) -> Iterator[tuple[JobRule, Hit]]:
    """What each rule finds in one job."""
    for rule in rules:
        for hit in rule.check(job):
            yield rule, hit


@dataclass(slots=True, kw_only=True)
class _Summary:
    """Findings of one file: those of one rule in one place are one, with their variants counted.

    A rule that finds several things in one place of one variant keeps them apart. The first of
    the gravest hits is the one that the finding speaks of.
    """

    file: RecipeFile
    of_variants: int
    has_memory: bool = True
    _found: dict[tuple[str, int, str, int], tuple[int, Finding]] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        return [finding for _, finding in self._found.values()]

    def add(self, variant: Variant, hits: Iterable[tuple[JobRule, Hit]]) -> None:
        """Take in what was found in one variant."""
        seen: Counter[tuple[str, int, str]] = Counter()
        for rule, hit in hits:
            place = (rule.id, hit.line, hit.path)
            key = (*place, seen[place])
            seen[place] += 1
            gravity, known = self._found.get(key, (-1, None))
            count = 1 if known is None else known.variants + 1
            if known is None or hit.gravity > gravity:
                gravity = hit.gravity
                known = _finding(rule, hit, self.file, variant, self.of_variants)
            self._found[key] = gravity, replace(known, variants=count)


def _finding(rule: Rule, hit: Hit, file: RecipeFile, variant: Variant, count: int) -> Finding:
    return Finding(
        rule=rule,
        source=file.source.name,
        line=hit.line,
        path=hit.path,
        message=hit.message,
        hint=hit.hint,
        of_variants=count,
        example=variant.suffix,
        edit=hit.edit,
    )


@dataclass(slots=True, kw_only=True)
class _Settings:
    """The configuration files of a run, and which of their entries the files were checked by."""

    folder: Path
    _met: dict[AllowedFindings, None] = field(default_factory=dict)

    def of(self, source: RecipeSource) -> tuple[AllowedFindings, ...]:
        inside = source.name if source.revision is None else source.name.partition(":")[2]
        path = self.folder / inside
        entries = tuple(each for each in settings_for(path, _KNOWN_NAMES) if each.holds_for(path))
        self._met |= dict.fromkeys(entries)
        return entries

    def unused(self, findings: Iterable[Finding], not_run: Collection[str]) -> Iterator[Finding]:
        """Entries that no finding needed, though files they hold for were checked."""
        allowed = {
            (each.rule.id, each.reason) for each in findings if not each.is_suppressed_in_source
        }
        for entry in self._met:
            is_used = any(
                names(entry.rule, rule_id) and reason == entry.reason for rule_id, reason in allowed
            )
            if not is_used and not any(names(entry.rule, rule_id) for rule_id in not_run):
                yield Finding(
                    rule=UNUSED,
                    source=entry.source,
                    line=entry.line,
                    path="check.ignore",
                    message=f"the entry for {entry.rule} suppresses nothing",
                    hint="remove it",
                )
