"""Reading the JSON files of a Hugging Face folder, whatever state they are in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.architecture import ModelArchitecture
from generator.errors import InvalidInput, PdrecipeError, Problem
from generator.hf_config.convert import QUANTIZATION_FILE, architecture_from_config

CONFIG_FILE = "config.json"


def load_architecture(path: Path) -> ModelArchitecture:
    """The architecture of a Hugging Face folder, or of one config.json and its neighbour.

    The model is named after its folder. Raises InvalidInput with every problem of both files.
    """
    file = _config_file(path)
    neighbour = file.with_name(QUANTIZATION_FILE)
    problems: list[Problem] = []
    config = _read(file, problems)
    quant = _read(neighbour, problems) if neighbour.exists() else None
    if config is None:
        raise InvalidInput(problems)
    name = file.resolve().parent.name
    try:
        architecture = architecture_from_config(config, quant, source=str(file), name=name)
    except PdrecipeError as error:
        raise InvalidInput([*problems, *error.problems]) from None
    if problems:
        raise InvalidInput(problems)
    return architecture


def _config_file(path: Path) -> Path:
    """The config.json that ``path`` means; raises InvalidInput where there is none."""
    try:
        is_folder = path.is_dir()
        file = path / CONFIG_FILE if is_folder else path
        if file.exists():
            return file
        message = f"the folder has no {CONFIG_FILE}" if is_folder else "there is no such file"
    except OSError as error:
        message = f"cannot be read: {(error.strerror or 'unreadable').lower()}"
    hint = f"give a Hugging Face model folder or its {CONFIG_FILE}"
    raise InvalidInput(Problem(message=message, hint=hint, source=str(path)))


def _read(file: Path, problems: list[Problem]) -> dict[str, Any] | None:
    """The JSON object in a file; None, and a problem more, where it holds none."""
    try:
        content = json.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        problems.append(Problem(message=f"cannot be read: {reason}", source=str(file)))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problems.append(Problem(message="is not UTF-8 text", source=str(file), line=line))
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        hint = "a download that was cut short? fetch the file again"
        problems.append(Problem(message=message, hint=hint, source=str(file), line=error.lineno))
    except (RecursionError, ValueError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "a number too long"
        problems.append(Problem(message=f"is not usable JSON: {what}", source=str(file)))
    else:
        if isinstance(content, dict):
            return content
        message = "must hold a JSON object at its top"
        problems.append(Problem(message=message, source=str(file), line=1))
    return None
