"""Which recipe file of one side belongs to which of the other, and how the two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from generator.normal_form import NormalForm, normal_form
from generator.recipe.expansion import variants
from generator.recipe.inputs import RecipeFile
from generator.recipe_diff.difference import Change, RecipeDiff, compare, meant_values
from generator.wording import FieldPath

_LEAST_LIKENESS = 0.6
_MOST_COMPARED_FOR_RENAMES = 40_000


class Status(StrEnum):
    """What became of a recipe file."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRecipe:
    """A recipe file with every job of it in normal form, by the job's suffix."""

    file: RecipeFile
    forms: Mapping[str, NormalForm]

    @property
    def path(self) -> str:
        """Its path below the folder that was given."""
        return self.file.source.relative_path


def expand(file: RecipeFile) -> ExpandedRecipe:
    """Every job of a recipe file; raises InvalidInput where its structure cannot be read."""
    forms: dict[str, NormalForm] = {}
    for variant in variants(file.document):
        suffix = variant.suffix
        while suffix in forms:  # a grid may hold a value twice
            suffix += "'"
        forms[suffix] = normal_form(variant)
    return ExpandedRecipe(file=file, forms=forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPair:
    """One job of both sides and how it differs; a job's suffix is empty where it is alone."""

    suffix: str
    before: NormalForm
    after: NormalForm
    diff: RecipeDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedChange:
    """A change and the suffixes of the jobs it is in."""

    change: Change
    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """A recipe file of both sides, or the one side that has it."""

    status: Status
    before: ExpandedRecipe | None
    after: ExpandedRecipe | None
    pairs: tuple[VariantPair, ...] = ()
    added_variants: tuple[str, ...] = ()
    removed_variants: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """What the file is called: by its name on the after side, if it is there."""
        side = self.after or self.before
        return side.path if side else ""

    @property
    def changes(self) -> tuple[VariedChange, ...]:
        """Every change once, with the jobs that have it."""
        return _merged((pair.suffix, change) for pair in self.pairs for change in pair.diff.changes)

    @property
    def inexpressible(self) -> tuple[VariedChange, ...]:
        """Every difference that a layout forces, once, with the jobs that have it."""
        return _merged(
            (pair.suffix, change) for pair in self.pairs for change in pair.diff.inexpressible
        )

    @property
    def differs(self) -> bool:
        """Whether anything but the spelling differs."""
        if self.status is not Status.SAME:
            return True
        return bool(self.changes or self.added_variants or self.removed_variants)


def _merged(found: Iterable[tuple[str, Change]]) -> tuple[VariedChange, ...]:
    changes: dict[tuple[FieldPath, str], Change] = {}
    suffixes: dict[tuple[FieldPath, str], list[str]] = {}
    for suffix, change in found:
        key = (change.path, repr((change.before, change.after, change.default)))
        changes.setdefault(key, change)
        suffixes.setdefault(key, []).append(suffix)
    return tuple(
        VariedChange(change=change, suffixes=tuple(suffixes[key]))
        for key, change in changes.items()
    )


def pair_files(before: Sequence[ExpandedRecipe], after: Sequence[ExpandedRecipe]) -> list[FileDiff]:
    """The files of both sides in pairs: by path below what was given, then by what is in them.

    A single recipe on each side, both of them named, is one pair whatever they are called.
    """
    if len(before) == len(after) == 1 and _is_named(before[0]) and _is_named(after[0]):
        return [_compared(before[0], after[0])]
    old = {each.path: each for each in before}
    new = {each.path: each for each in after}
    gone = [each for path, each in old.items() if path not in new]
    fresh = [each for path, each in new.items() if path not in old]
    renamed = dict(_renamed(gone, fresh))
    diffs = [_compared(old[path], each) for path, each in new.items() if path in old]
    for each in fresh:
        origin = renamed.get(each.path)
        diffs.append(
            _compared(origin, each, Status.RENAMED)
            if origin
            else FileDiff(status=Status.ADDED, before=None, after=each)
        )
    origins = {each.path for each in renamed.values()}
    diffs += (
        FileDiff(status=Status.REMOVED, before=each, after=None)
        for each in gone
        if each.path not in origins
    )
    return sorted(diffs, key=lambda diff: diff.path)


def _is_named(recipe: ExpandedRecipe) -> bool:
    return recipe.file.source.is_named


def _compared(
    before: ExpandedRecipe, after: ExpandedRecipe, status: Status | None = None
) -> FileDiff:
    suffixes = _paired_suffixes(before.forms, after.forms)
    pairs = tuple(
        VariantPair(
            suffix=new,
            before=before.forms[old],
            after=after.forms[new],
            diff=compare(before.forms[old], after.forms[new]),
        )
        for old, new in suffixes.items()
    )
    added = tuple(each for each in after.forms if each not in suffixes.values())
    removed = tuple(each for each in before.forms if each not in suffixes)
    is_same = all(pair.diff.is_empty for pair in pairs) and not added and not removed
    return FileDiff(
        status=status or (Status.SAME if is_same else Status.CHANGED),
        before=before,
        after=after,
        pairs=pairs,
        added_variants=added,
        removed_variants=removed,
    )


def _paired_suffixes(
    before: Mapping[str, NormalForm], after: Mapping[str, NormalForm]
) -> dict[str, str]:
    """Jobs by suffix; where a file is one job on both sides, that one, whatever its suffix."""
    if len(before) == len(after) == 1:
        return dict(zip(before, after, strict=True))
    return {suffix: suffix for suffix in before if suffix in after}


# --- renames ----------------------------------------------------------------------------------


def _renamed(
    gone: Sequence[ExpandedRecipe], fresh: Sequence[ExpandedRecipe]
) -> Iterator[tuple[str, ExpandedRecipe]]:
    """New paths with the file that each is most like, the best matches first, each file once."""
    if len(gone) * len(fresh) > _MOST_COMPARED_FOR_RENAMES:
        return
    contents = {id(each): _content(each) for each in (*gone, *fresh)}
    ranked = sorted(
        (
            (_likeness(contents[id(old)], contents[id(new)]), old, new)
            for old in gone
            for new in fresh
        ),
        key=lambda each: (-each[0], each[1].path, each[2].path),
    )
    used: set[int] = set()
    for likeness, old, new in ranked:
        if likeness >= _LEAST_LIKENESS and not used & {id(old), id(new)}:
            used |= {id(old), id(new)}
            yield new.path, old


def _content(recipe: ExpandedRecipe) -> frozenset[tuple[FieldPath, str]]:
    """What a file says, apart from names; of one with many jobs, its first one stands for it."""
    form = next(iter(recipe.forms.values()), None)
    values: Mapping[FieldPath, Any] = meant_values(form) if form else {}
    return frozenset((path, repr(value)) for path, value in values.items() if path != ("name",))


def _likeness(
    one: frozenset[tuple[FieldPath, str]], other: frozenset[tuple[FieldPath, str]]
) -> float:
    """The share of values in common, from 0 to 1 (Dice's coefficient)."""
    total = len(one) + len(other)
    return 2 * len(one & other) / total if total else 1.0
