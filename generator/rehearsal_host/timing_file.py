"""Writes step times as the archive of arrays that a mocker reads."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from generator.bounds.numbers import Array
from generator.files import write_bytes_atomically


def write_timing_file(path: Path, arrays: Mapping[str, Array]) -> None:
    """An .npz of 64-bit floats; errors as write_bytes_atomically."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_bytes_atomically(path, content.getvalue())
