"""Measured profiles out of start-up logs, and the files that keep them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from generator.calibration.account import ROUNDING_BYTES, Figure, LoggedAccount
from generator.calibration.result import Calibration
from generator.calibration.subject import Subject
from generator.capacity.memory_terms import profile_key
from generator.documents import dump_yaml_scalar, parse_document
from generator.errors import InvalidInput, Problem
from generator.facts import MeasuredProfile, read_profiles
from generator.files import read_text, write_text_atomically
from generator.units import format_gib, gib
from generator.validation import validate

_KEY_FIELDS = ("engine", "engine_version", "model", "gpu")
_RUN_FIELDS = (
    "num_speculative_tokens",
    "max_num_seqs",
    "max_num_batched_tokens",
    "cudagraph_mode",
    "max_cudagraph_capture_size",
)
_COMMON = (*_KEY_FIELDS, "engine_total", "gpu_memory_utilization")
_TERMS = (
    "total",
    "cuda_context",
    "weights",
    "non_torch",
    "peak_activation",
    "graph_reserved",
    "kv_cache",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileUpdate:
    """What a profile file becomes; ``messages`` say what happened to each run."""

    path: Path
    text: str
    messages: tuple[str, ...]


def measured_profile(calibration: Calibration, as_of: str) -> MeasuredProfile:
    """The figures of the GPU that binds, under the settings the engine was started with.

    ``as_of`` is the day of the log. Raises InvalidInput with every figure or setting that is
    NOT FOUND.
    """
    subject, account = calibration.subject, calibration.account
    source = calibration.log.source
    problems = list(_lacking(subject, account, source))
    if problems or subject is None or account is None:
        raise InvalidInput(problems)
    sizes = _sizes(account)
    engine = subject.engine
    return MeasuredProfile(
        key=profile_key(
            subject.architecture, subject.gpu, engine.options, engine.resolved, subject.defaults
        ),
        name=engine.name,
        engine_total_bytes=sizes["total"],
        gpu_memory_utilization=engine.resolved.gpu_memory_utilization,
        cuda_context_bytes_per_rank=sizes["cuda_context"],
        non_torch_bytes_per_rank=sizes["non_torch"],
        weights_bytes_per_rank=sizes["weights"],
        peak_activation_bytes_per_rank=sizes["peak_activation"],
        graph_reserved_bytes_per_rank=sizes["graph_reserved"],
        graph_used_bytes_per_rank=_use(account.graph_used),
        kv_cache_bytes_per_rank=sizes["kv_cache"],
        source=f"start-up log {Path(source).name}",
        as_of=as_of,
    )


def _sizes(account: LoggedAccount) -> dict[str, int]:
    figures: dict[str, Figure | None] = {name: getattr(account, name) for name in _TERMS}
    return {name: figure.size_bytes for name, figure in figures.items() if figure}


def _use(figure: Figure | None) -> int | None:
    """Graph memory as captured; a pool that shrank says nothing of it."""
    return figure.size_bytes if figure and figure.size_bytes >= 0 else None


def _lacking(
    subject: Subject | None, account: LoggedAccount | None, source: str
) -> Iterator[Problem]:
    """Everything a profile needs that is NOT FOUND."""
    if subject is None:
        hint = "add --spec, or --model, --gpu and --layout"
        yield Problem(message="a profile needs to know the engine", hint=hint, source=source)
    elif subject.assumed:
        flags = ", ".join(f"--{name}" for name in subject.assumed)
        yield Problem(
            message=f"a profile needs settings that are not in the log: {flags}",
            hint="give them as the engine was started",
            source=source,
        )
    missing = _TERMS if account is None else account.missing
    if missing:
        names = ", ".join(name.replace("_", " ") for name in missing)
        yield Problem(
            message=f"a profile needs figures that are NOT FOUND in the log: {names}",
            hint="they stand in the budget line, written after graphs are captured",
            source=source,
        )
    elif account is not None and abs(account.gap_bytes or 0) > ROUNDING_BYTES:
        yield Problem(
            message=(
                f"a profile needs an account that closes, and {gib(account.gap_bytes or 0):+.2f}"
                " GiB of what the engine may use are unexplained"
            ),
            source=source,
        )
    elif account is not None and (below := [n for n, size in _sizes(account).items() if size < 0]):
        yield Problem(
            message=f"the log's figures contradict each other: {', '.join(below)} below 0",
            source=source,
        )


def extend_profile_file(path: Path, measured: Iterable[MeasuredProfile]) -> ProfileUpdate:
    """What ``path`` becomes with these runs; nothing is written yet.

    A new file is made, an existing one extended: a run with the settings of another replaces it,
    and the message says which figures that changes. Of several logs of one engine the least KV
    cache counts. Raises InvalidInput where the file cannot be read, or is of another engine,
    version, model, GPU, memory or utilization.
    """
    present = list(read_profiles(path)) if path.exists() else []
    runs = {profile.key: profile for profile in present}
    messages: list[str] = []
    fresh: dict[object, MeasuredProfile] = {}
    for profile in measured:
        other = fresh.setdefault(profile.key, profile)
        if other is not profile:
            kept = min(other, profile, key=lambda run: run.kv_cache_bytes_per_rank)
            fresh[profile.key] = kept
            messages.append(
                f"{other.source} and {profile.source} are of one engine: {kept.source} is kept,"
                " it has the least KV cache"
            )
    reference = [*present, *fresh.values()][:1]
    if problems := [
        problem
        for profile in fresh.values()
        for problem in _foreign(path, reference[0], profile, is_file=bool(present))
    ]:
        raise InvalidInput(problems)
    taken = {profile.name for profile in present}
    for profile in fresh.values():
        known = runs.get(profile.key)
        if known is None:
            runs[profile.key] = _renamed(profile, taken)
            messages.append(f"added '{runs[profile.key].name}'")
        else:
            runs[profile.key] = replace(profile, name=known.name)
            messages.append(_replacement(known, profile))
        taken.add(runs[profile.key].name)
    text = _text(tuple(runs.values()))
    if present:
        text = _head_comment(path) + text
    validate(parse_document(text, str(path)), "measured-profile")
    return ProfileUpdate(path=path, text=text, messages=tuple(messages))


def write_profile_file(update: ProfileUpdate) -> None:
    """Write the file whole or not at all."""
    write_text_atomically(update.path, update.text)


def _foreign(
    path: Path, reference: MeasuredProfile, profile: MeasuredProfile, *, is_file: bool
) -> Iterator[Problem]:
    """Why a run cannot stand in a file beside others: their common fields differ."""
    whose = "the file" if is_file else reference.source
    for name, theirs, own in zip(_COMMON, _common(reference), _common(profile), strict=True):
        if theirs != own:
            yield Problem(
                message=f"{name} is {theirs} in {whose}, but {own} in {profile.source}",
                hint="write it to a file of its own",
                source=str(path),
            )


def _common(profile: MeasuredProfile) -> tuple[str, ...]:
    """What all runs of a file share, as it is written there."""
    return (
        *(str(getattr(profile.key, name)) for name in _KEY_FIELDS),
        format_gib(profile.engine_total_bytes),
        f"{profile.gpu_memory_utilization:g}",
    )


def _renamed(profile: MeasuredProfile, taken: set[str]) -> MeasuredProfile:
    """The run under a name that no other has: messages call runs by their names."""
    names = [profile.name, *(f"{profile.name} ({number})" for number in range(2, len(taken) + 3))]
    return replace(profile, name=next(name for name in names if name not in taken))


def _replacement(known: MeasuredProfile, profile: MeasuredProfile) -> str:
    changed = [
        f"{name.replace('_', ' ')} {before} -> {after}"
        for (name, before), (_, after) in zip(
            _memory(known).items(), _memory(profile).items(), strict=True
        )
        if before != after
    ]
    if not changed:
        return f"'{known.name}' agrees with the log"
    return f"replaced '{known.name}': {', '.join(changed)}"


def _memory(profile: MeasuredProfile) -> dict[str, str]:
    """The figures of a run as they are written."""
    used = profile.graph_used_bytes_per_rank
    return {
        "cuda_context": format_gib(profile.cuda_context_bytes_per_rank),
        "non_torch": format_gib(profile.non_torch_bytes_per_rank),
        "weights": format_gib(profile.weights_bytes_per_rank),
        "peak_activation": format_gib(profile.peak_activation_bytes_per_rank),
        "graph_reserved": format_gib(profile.graph_reserved_bytes_per_rank),
        "graph_used": "" if used is None else format_gib(used),
        "kv_cache": format_gib(profile.kv_cache_bytes_per_rank),
    }


def _text(profiles: tuple[MeasuredProfile, ...]) -> str:
    """The file with these runs; source and date are each run's own but where all share them."""
    first = profiles[0]
    lines = [
        "version: 1",
        f"source: {dump_yaml_scalar(first.source)}",
        f"as_of: {dump_yaml_scalar(first.as_of)}",
        *(f"{name}: {dump_yaml_scalar(getattr(first.key, name))}" for name in _KEY_FIELDS),
        f"engine_total: {format_gib(first.engine_total_bytes)}",
        f"gpu_memory_utilization: {first.gpu_memory_utilization:g}",
        "runs:",
    ]
    for profile in profiles:
        lines += _run_lines(profile, first)
    return "\n".join(lines) + "\n"


def _run_lines(profile: MeasuredProfile, first: MeasuredProfile) -> Iterator[str]:
    key = profile.key
    yield f"  - name: {dump_yaml_scalar(profile.name)}"
    yield (
        f"    layout: {{tensor: {key.tensor}, data: {key.data}, pipeline: {key.pipeline},"
        f" expert_parallel: {str(key.expert_parallel).lower()}}}"
    )
    for name in _RUN_FIELDS:
        yield f"    {name}: {getattr(key, name)}"
    yield "    memory:"
    for name, size in _memory(profile).items():
        if size:
            yield f"      {name}: {size}"
    for name in ("source", "as_of"):
        own = getattr(profile, name)
        if own != getattr(first, name):
            yield f"    {name}: {dump_yaml_scalar(own)}"


def _head_comment(path: Path) -> str:
    """The comment a file starts with; others do not survive a rewrite."""
    lines = read_text(path, str(path)).splitlines(keepends=True)
    return "".join(takewhile(lambda line: line.startswith("#"), lines))
