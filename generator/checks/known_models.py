"""Models that the package knows by the name of their repository, or finds in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from generator.architecture import ModelArchitecture
from generator.errors import InvalidInput, Problem
from generator.facts.fact import DATA, load_data
from generator.hf_config import load_architecture
from generator.normal_form import NormalForm
from generator.wording import did_you_mean, shown

_FILE = "known_models.yaml"
_FOLDER = DATA / "models"
_HUB_PREFIX = "hf:"


@cache
def known_models() -> Mapping[str, tuple[str, ...]]:
    """The patterns of repositories by the catalogue's ids."""
    return {key: tuple(patterns) for key, patterns in load_data(_FILE)["models"].items()}


def chosen_model(text: str) -> ModelArchitecture:
    """The model that a command line names: a folder, a catalogue id, or a known repository.

    Raises InvalidInput for what is none of them, and for a folder whose model is not modelled.
    """
    if Path(text).exists():
        return load_architecture(Path(text))
    found = text if text in known_models() else _id_of(text.removeprefix(_HUB_PREFIX))
    if found is None:
        hint = did_you_mean(text, known_models()) or f"known: {', '.join(known_models())}"
        message = f"there is no folder and no known model {shown(text)}"
        raise InvalidInput(Problem(message=message, hint=hint, source="--model"))
    return _from_catalogue(found)


def model_of(form: NormalForm) -> ModelArchitecture | None:
    """The model that a recipe runs; None where its repository and its path are not known."""
    path = form.get("model", "path")
    for name in (form.get("identity", "model", "repo"), path):
        found = _id_of(name.removeprefix(_HUB_PREFIX)) if isinstance(name, str) else None
        if found is not None:
            return _from_catalogue(found)
    return _in_folder(path) if isinstance(path, str) else None


def is_known(repository: str) -> bool:
    """Whether the package has the model of a repository, such as ``Qwen/Qwen3.5-27B``."""
    return _id_of(repository) is not None


@cache
def _id_of(repository: str) -> str | None:
    return next(
        (
            key
            for key, patterns in known_models().items()
            if any(fnmatchcase(repository, pattern) for pattern in patterns)
        ),
        None,
    )


@cache
def _from_catalogue(key: str) -> ModelArchitecture:
    return load_architecture(_FOLDER / key)


@cache
def _in_folder(path: str) -> ModelArchitecture | None:
    """The model of a folder on this machine; None where it is none, or not modelled."""
    try:
        return load_architecture(Path(path)) if Path(path, "config.json").is_file() else None
    except (InvalidInput, OSError, ValueError):
        return None
