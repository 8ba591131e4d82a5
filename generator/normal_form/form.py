"""A recipe's values under the same paths, whatever layout and spelling they are written in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.errors import Problem
from generator.normal_form.consumer_types import ANY_STEP, as_concurrencies, as_consumed
from generator.normal_form.engine_flags import flag_values
from generator.normal_form.leaves import leaves
from generator.normal_form.neutral_paths import ROLES, neutral_path
from generator.normal_form.readings import Readings, readings
from generator.recipe.expansion import Variant
from generator.recipe.recipe import Dialect
from generator.wording import FieldPath, dotted_path


@dataclass(frozen=True, slots=True, kw_only=True)
class FormValue:
    """A value and where in its variant it is written; one of a JSON text has the text's place."""

    value: Any
    written_at: FieldPath


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormalForm:
    """Every value of a variant by its neutral path, such as ``roles.decode.args.max-num-seqs``.

    Values are scalars, tuples of them, and empty mappings. Roles are ``prefill``, ``decode`` and
    ``agg``, services go by name. ``repeated`` are the paths that the recipe gives more than once,
    in several spellings; the value counts whose spelling is the path's own.
    """

    variant: Variant = field(repr=False)
    dialect: Dialect
    values: Mapping[FieldPath, FormValue]
    repeated: tuple[FieldPath, ...] = ()

    def plain(self) -> dict[FieldPath, Any]:
        """The values alone: what two forms have to share to mean the same."""
        return {path: each.value for path, each in self.values.items()}

    def get(self, *path: str | int) -> Any:
        """The value at a path; None where there is none."""
        found = self.values.get(path)
        return None if found is None else found.value

    def below(self, *path: str | int) -> dict[FieldPath, Any]:
        """The values below a path, by the rest of their paths."""
        length, last = len(path), path[-1]
        return {
            each[length:]: found.value
            for each, found in self.values.items()
            # The last step first: it rules out most paths without making part of them.
            if len(each) > length and each[length - 1] == last and each[:length] == path
        }

    def args(self, role: str) -> dict[str, Any]:
        """A role's engine flags, nested ones with dots: ``speculative-config.method``."""
        return {
            ".".join(map(str, path)): value
            for path, value in self.below("roles", role, "args").items()
        }

    @property
    def engine(self) -> str:
        """The engine of the recipe; empty where it does not say."""
        engine = self.get("engine", "type")
        return engine if isinstance(engine, str) else ""

    def engine_of(self, role: str) -> str:
        """The engine of a role, which v2 may choose for each."""
        engine = self.get("roles", role, "engine", "type")
        return engine if isinstance(engine, str) else self.engine

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of which anything is said, in the order prefill, decode, agg."""
        named = {path[1] for path in self.values if path[0] == "roles" and len(path) > 2}
        return tuple(role for role in ROLES if role in named)

    def written_at(self, path: FieldPath) -> FieldPath:
        """Where in the variant a path, or the nearest part of it that is there, is written."""
        for length in range(len(path), 0, -1):
            found = self.values.get(path[:length])
            if found is not None:
                return found.written_at
            around = self._around(path[:length])
            if around is not None:
                return around
        return ()

    def line(self, path: FieldPath) -> int:
        """The line of a path, or of the nearest part of it that is there."""
        return self.variant.line(self.written_at(path))

    def problem(self, path: FieldPath, message: str, hint: str = "") -> Problem:
        """A Problem at a neutral path, which it is called by, with its file and line."""
        return Problem(
            message=message,
            hint=hint,
            source=self.variant.document.source,
            line=self.line(path),
            path=dotted_path(path),
        )

    def _around(self, prefix: FieldPath) -> FieldPath | None:
        """The section that the values below a prefix are written in."""
        length = len(prefix)
        inside = [path for path in self.values if path[:length] == prefix]
        if not inside:
            return None
        nearest = min(inside, key=len)
        written = self.values[nearest].written_at
        steps_up = len(nearest) - length
        if _is_flag(nearest):  # steps inside a JSON text or a dotted flag are none of the document
            steps_up -= len(nearest) - len(written)
        return written[: max(1, len(written) - max(0, steps_up))]


def normal_form(variant: Variant) -> NormalForm:
    """The normal form of a variant; a recipe may be partial or faulty, nothing of it is lost."""
    data = variant.data
    dialect = Dialect.V2 if "schema" in data else Dialect.V1
    collected = _Collector()
    read = readings(data, dialect)
    for written_at, value in leaves(data) if data else ():
        for path, spelled, each in _read_leaf(written_at, value, dialect, read):
            collected.add(path, spelled, each, written_at)
    for path, value, written_at in read.implied:
        collected.add_missing(path, value, written_at)
    return NormalForm(
        variant=variant,
        dialect=dialect,
        values=collected.settled(),
        repeated=tuple(collected.contested),
    )


def _read_leaf(
    written_at: FieldPath, value: Any, dialect: Dialect, read: Readings
) -> Iterator[tuple[FieldPath, FieldPath, Any]]:
    """What one leaf of the document says: neutral path, path as spelled, value."""
    stated = read.stated.get(written_at)
    if stated is not None:
        for path, each in stated:
            yield path, written_at, each
        return
    renamed = read.renamed.get(written_at[:2])
    known_as = written_at
    if renamed is not None:
        path, known_as = renamed + written_at[2:], (written_at[0], ANY_STEP, *written_at[2:])
    else:
        path = neutral_path(written_at, dialect, read.engine)
    if _is_flag(path):
        for flag, spelled, each in flag_values(path[3:], value):
            yield path[:3] + flag, path[:3] + spelled, each
    elif path == ("benchmark", "concurrencies"):
        yield path, written_at, as_concurrencies(value)
    else:
        yield path, written_at, as_consumed(value, known_as, dialect)


def _is_flag(path: FieldPath) -> bool:
    return len(path) > 3 and path[0] == "roles" and path[2] == "args"


class _Collector:
    """Values by path; where a path comes twice, one keeps it and the rest keep their spelling."""

    def __init__(self) -> None:
        self.contested: dict[FieldPath, list[tuple[FieldPath, FormValue]]] = {}
        self._values: dict[FieldPath, FormValue] = {}
        self._spelled: dict[FieldPath, FieldPath] = {}

    def add(self, path: FieldPath, spelled: FieldPath, value: Any, written_at: FieldPath) -> None:
        found = FormValue(value=value, written_at=written_at)
        if path not in self._values:
            self._values[path] = found
            self._spelled[path] = spelled
            return
        first = (self._spelled[path], self._values[path])
        self.contested.setdefault(path, [first]).append((spelled, found))

    def add_missing(self, path: FieldPath, value: Any, written_at: FieldPath) -> None:
        self._values.setdefault(path, FormValue(value=value, written_at=written_at))

    def settled(self) -> dict[FieldPath, FormValue]:
        """The values, whatever order the document had them in."""
        for path, candidates in self.contested.items():
            own, *others = sorted(candidates, key=lambda each: (each[0] != path, str(each[0])))
            self._values[path] = own[1]
            for spelled, value in others:
                self._values.setdefault(spelled, value)
        return self._values
