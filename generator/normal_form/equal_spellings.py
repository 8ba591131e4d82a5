"""Values that are spelled differently and reach their reader as the same: one spelling of them.

A flag's value becomes a word of the engine's command line, so ``"656"`` and ``656`` are one. Not
so the parallel sizes of a data-parallel vLLM role: srt-slurm multiplies them before that, and text
breaks the job there (rule TOP006).
Time limits go to Slurm, which knows several formats.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from generator.normal_form.form import FormValue, NormalForm
from generator.wording import FieldPath

COMMAND_LINE_ENGINES = ("vllm", "sglang")
"""Engines that get flags on a command line, where srt-slurm leaves out false and null."""

_MULTIPLIED = frozenset({"data-parallel-size", "tensor-parallel-size", "pipeline-parallel-size"})
_DATA = ("data-parallel-size", "dp-size", "dp")
_FRACTIONS = frozenset({"gpu-memory-utilization", "mem-fraction-static"})
"""Flags that are numbers whatever decimals they are written with; a name such as 1.10 is none."""
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,30})\Z")
_DECIMAL = re.compile(r"-?[0-9]{1,30}\.[0-9]{1,30}\Z")
_SLURM_TIME = re.compile(
    r"(?:(?P<days>[0-9]{1,6})-(?P<day_hours>[0-9]{1,6})"
    r"(?::(?P<day_minutes>[0-9]{1,6})(?::(?P<day_seconds>[0-9]{1,6}))?)?"
    r"|(?:(?P<hours>[0-9]{1,6}):(?=[0-9]+:))?(?P<minutes>[0-9]{1,6})(?::(?P<seconds>[0-9]{1,6}))?)\Z"
)


def with_equal_spellings(form: NormalForm) -> NormalForm:
    """The form with one spelling for each value that its reader takes for the same."""
    respelled: dict[FieldPath, FormValue] = {}
    for path, found in form.values.items():
        value = _one_spelling(form, path, found)
        if value is not found.value:
            respelled[path] = replace(found, value=value)
    return replace(form, values={**form.values, **respelled}) if respelled else form


def _one_spelling(form: NormalForm, path: FieldPath, found: FormValue) -> Any:
    if path == ("slurm", "time_limit"):
        return slurm_time(found.value)
    if path[0] == "roles" and len(path) > 3 and path[2] == "args":
        is_text = isinstance(found.value, str | tuple)
        if is_text and not _is_kept(form, path, found):
            return _as_word(found.value, path[3])
    return found.value


def _is_kept(form: NormalForm, path: FieldPath, found: FormValue) -> bool:
    """Whether text and number differ here: in files, in JSON, and where srt-slurm multiplies."""
    role = str(path[1])
    engine = form.engine_of(role)
    if engine not in COMMAND_LINE_ENGINES or not _is_a_flag_of_its_own(path, found):
        return True
    is_data_parallel = any(form.get("roles", role, "args", flag) is not None for flag in _DATA)
    return engine == "vllm" and path[3] in _MULTIPLIED and is_data_parallel


def _is_a_flag_of_its_own(path: FieldPath, found: FormValue) -> bool:
    """Whether a value is a flag's, a dotted one's too, and not part of a mapping or JSON text."""
    written = found.written_at
    return len(written) == 4 and len(str(written[3]).split(".")) == len(path) - 3


def _as_word(value: Any, flag: str | int) -> Any:
    if isinstance(value, tuple):
        return tuple(_as_word(each, flag) for each in value)
    if not isinstance(value, str):
        return value
    if _WHOLE.match(value) and value != "-0":
        return int(value)
    if _DECIMAL.match(value) and (flag in _FRACTIONS or str(float(value)) == value):
        return float(value)
    return value


def slurm_time(value: Any) -> Any:
    """A time limit as ``[days-]hh:mm:ss``, from any format of ``sbatch --time``; others as written.

    A number alone is minutes; days may be followed by hours, minutes and seconds.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    found = _SLURM_TIME.match(str(value))
    if found is None:
        return value
    part = {name: int(digits or 0) for name, digits in found.groupdict().items()}
    hours = 24 * part["days"] + part["day_hours"] + part["hours"]
    minutes = 60 * hours + part["day_minutes"] + part["minutes"]
    minutes, seconds = divmod(60 * minutes + part["day_seconds"] + part["seconds"], 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{days}-{clock}" if days else clock
