"""Two recipes compared by meaning: the values that one has and the other has not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from generator.normal_form import (
    NormalForm,
    canonical,
    default_value,
    inexpressible,
    same_value,
)
from generator.recipe.recipe import Dialect
from generator.recipe_diff.effects import Effect, effect_of, strongest
from generator.wording import FieldPath


class Action(StrEnum):
    """What happened to a value."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


_MIRRORED = {
    Action.ADDED: Action.REMOVED,
    Action.REMOVED: Action.ADDED,
    Action.CHANGED: Action.CHANGED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value of the normal form that differs.

    ``before`` and ``after`` are None where a side does not say it. ``default`` is what holds
    there then, None where that is not known.
    """

    path: FieldPath
    action: Action
    before: Any
    after: Any
    effect: Effect
    default: Any = None

    def mirrored(self) -> Change:
        """The same change made undone."""
        action = _MIRRORED[self.action]
        return replace(self, action=action, before=self.after, after=self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeDiff:
    """How one recipe differs from another.

    ``inexpressible`` are differences that the layout of one side forces: it has no key for them.
    ``unchanged`` is the number of values that both sides share.
    """

    changes: tuple[Change, ...] = ()
    inexpressible: tuple[Change, ...] = ()
    unchanged: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether both mean the same as far as both layouts can say it."""
        return not self.changes

    @property
    def compared(self) -> int:
        """How many values were compared."""
        return self.unchanged + len(self.changes)

    @property
    def effect(self) -> Effect | None:
        """The strongest effect of all changes."""
        return strongest(change.effect for change in self.changes)

    def mirrored(self) -> RecipeDiff:
        """The difference seen from the other side."""
        return replace(
            self,
            changes=tuple(each.mirrored() for each in self.changes),
            inexpressible=tuple(each.mirrored() for each in self.inexpressible),
        )


def meant_values(form: NormalForm) -> dict[FieldPath, Any]:
    """The values that tell a recipe from others.

    Without what holds anyway; the GPUs of a worker, whose default moves with the nodes, are
    always said.
    """
    values = canonical(form).plain()
    for role in form.roles:
        path = ("roles", role, "gpus")
        gpus = form.get(*path)
        gpus = default_value(form, path) if gpus is None else gpus
        if gpus is not None:
            values[path] = gpus
    return values


def compare(before: NormalForm, after: NormalForm) -> RecipeDiff:
    """How ``after`` differs from ``before``, whatever layout and spelling each is written in."""
    old, new = meant_values(before), meant_values(after)
    forced = _forced(before, after.dialect) | _forced(after, before.dialect)
    paths = list(old) + [path for path in new if path not in old]
    differing = [path for path in paths if not _is_same(old, new, path)]
    changes = [_change(path, old, new, before, after) for path in differing]
    return RecipeDiff(
        changes=tuple(each for each in changes if not _is_forced(each, forced)),
        inexpressible=tuple(each for each in changes if _is_forced(each, forced)),
        unchanged=len(paths) - len(differing),
    )


def apply(diff: RecipeDiff, values: Mapping[FieldPath, Any]) -> dict[FieldPath, Any]:
    """The values of the other side: ``meant_values`` of the first side with the diff's changes."""
    result = dict(values)
    for change in (*diff.changes, *diff.inexpressible):
        if change.action is Action.REMOVED:
            del result[change.path]
        else:
            result[change.path] = change.after
    return result


def _is_same(old: Mapping[FieldPath, Any], new: Mapping[FieldPath, Any], path: FieldPath) -> bool:
    return path in old and path in new and same_value(old[path], new[path])


def _change(
    path: FieldPath,
    old: Mapping[FieldPath, Any],
    new: Mapping[FieldPath, Any],
    before: NormalForm,
    after: NormalForm,
) -> Change:
    action = Action.CHANGED
    default = None
    if path not in old:
        action, default = Action.ADDED, default_value(before, path)
    elif path not in new:
        action, default = Action.REMOVED, default_value(after, path)
    return Change(
        path=path,
        action=action,
        before=old.get(path),
        after=new.get(path),
        effect=effect_of(path),
        default=default,
    )


def _forced(form: NormalForm, other: Dialect) -> frozenset[FieldPath]:
    """The paths at which a recipe says what the other layout has no words for."""
    if form.dialect is other:
        return frozenset()
    return frozenset(each.path for each in inexpressible(form, other) if each.is_known)


def _is_forced(change: Change, forced: frozenset[FieldPath]) -> bool:
    return change.action is not Action.CHANGED and change.path in forced


def same_values(one: Mapping[FieldPath, Any], other: Mapping[FieldPath, Any]) -> bool:
    """Whether two sets of values mean the same: equal paths, and the same at each."""
    return one.keys() == other.keys() and all(_is_same(one, other, path) for path in one)
