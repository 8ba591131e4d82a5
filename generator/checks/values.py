"""SCH: values that no engine and no launcher can use, whatever the rest of the recipe says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.checks.workers import PARALLEL_SIZES, Workers, whole
from generator.engine.options import options_from_flags
from generator.errors import InvalidInput
from generator.wording import FieldPath, shown

_POSITIVE: tuple[FieldPath, ...] = (
    ("resources", "gpus_per_node"),
    ("benchmark", "isl"),
    ("benchmark", "osl"),
)
_JSON_FLAGS = ("hf-overrides", "limit-mm-per-prompt", "mm-processor-kwargs")
_MAY_BE_ZERO = ("max-cudagraph-capture-size", "compilation-config.max-cudagraph-capture-size")
_LENGTHS_OF_THE_MODEL = ("auto", -1, "-1")
_WITH_UNIT = re.compile(r"[0-9]+(\.[0-9]+)?[kmgtKMGT]\Z")


@rule("SCH009", Severity.ERROR)
def malformed_value(job: Job) -> Iterator[Hit]:
    """A value is none that its key can have.

    ## What it does
    Looks for sizes and lengths below 1, infinite numbers, JSON text that does not parse, and
    whatever else vLLM would not read as the value of a flag that decides its memory.

    ## Why is this bad?
    The launcher or the engine stops at it, or divides by it.

    ## Example
    `gpus_per_node: 0`, `tensor-parallel-size: -8`, `compilation-config: '{"cudagraph_mode": '`.
    """
    yield from _faulty_numbers(job)
    for workers in job.roles:
        found = _faulty_sizes(workers) | _infinite(workers)
        if workers.engine == "vllm":
            found = _unreadable(workers) | found | _broken_json(workers)
        for flag, message in found.items():
            yield job.flag_hit(workers, flag, message)


def _faulty_numbers(job: Job) -> Iterator[Hit]:
    paths = (*_POSITIVE, *(("roles", each.role, "gpus") for each in job.roles))
    for path in paths:
        number = whole(job.form.get(*path))
        if number is not None and number < 1:
            yield job.hit(path, _expected("a whole number of at least 1", number))
    for workers in job.roles:
        for key in ("nodes", "workers"):
            number = whole(job.form.get("roles", workers.role, key))
            if number is not None and number < 0:
                path = ("roles", workers.role, key)
                yield job.hit(path, _expected("a whole number of at least 0", number))
    if job.concurrencies and min(job.concurrencies) < 1:
        path = ("benchmark", "concurrencies")
        yield job.hit(path, _expected("whole numbers of at least 1", min(job.concurrencies)))


def _faulty_sizes(workers: Workers) -> dict[str, str]:
    sizes = {flag: _number(workers.flags.get(flag)) for flag in PARALLEL_SIZES}
    return {
        flag: _expected("a whole number of at least 1", size)
        for flag, size in sizes.items()
        if size is not None and size < 1
    }


def _number(value: Any) -> int | None:
    """A whole number, also a negative one that a sweep made a text."""
    if isinstance(value, str) and value.startswith("-"):
        positive = whole(value[1:])
        return None if positive is None else -positive
    return whole(value)


def _infinite(workers: Workers) -> dict[str, str]:
    return {
        flag: _expected("a number", value)
        for flag, value in workers.flags.items()
        if isinstance(value, float) and not math.isfinite(value)
    }


def _broken_json(workers: Workers) -> dict[str, str]:
    """Flags of JSON whose text opens an object and is none."""
    found = {}
    for flag, value in workers.flags.items():
        is_json = flag.endswith("-config") or flag in _JSON_FLAGS
        if is_json and isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                json.loads(value)
            except (ValueError, RecursionError) as error:
                found[flag] = f"is not JSON: {shown(value)} ({error})"
    return found


def _unreadable(workers: Workers) -> dict[str, str]:
    """What the engine options refuse; texts that an engine's command line reads are none of it."""
    try:
        options_from_flags(workers.flags)
    except InvalidInput as error:
        return {
            each.path: each.message
            for each in error.problems
            if not _is_readable(each.path, workers.flags.get(each.path))
        }
    return {}


def _is_readable(flag: str, value: Any) -> bool:
    """Whether vLLM's command line takes a value that the options do not."""
    if flag in _MAY_BE_ZERO and whole(value) == 0:
        return True
    if flag == "max-model-len" and value in _LENGTHS_OF_THE_MODEL:
        return True
    if not isinstance(value, str):
        return False
    if flag == "gpu-memory-utilization":
        return _is_share(value)
    return value.lower() in ("true", "false") or _WITH_UNIT.match(value) is not None


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) <= 1
    except ValueError:
        return False


def _expected(what: str, value: Any) -> str:
    return f"must be {what}, got {shown(value)}"
