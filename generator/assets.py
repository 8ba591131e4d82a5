"""Where templates/ and schemas/ lie: inside an installed wheel, or at the top of a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def asset_root() -> Path:
    """Return the folder that holds ``templates/`` and ``schemas/``.

    A wheel carries both inside the package; a checkout, editable or not installed at all, keeps
    them beside it. Raises FileNotFoundError where neither place has both: a broken installation.
    """
    return find_asset_root(_PACKAGE)


def find_asset_root(package: Path) -> Path:
    """Return the folder with the assets of the package in ``package``; errors as asset_root."""
    homes = (package / "_assets", package.parent)
    for home in homes:
        if (home / "templates").is_dir() and (home / "schemas").is_dir():
            return home
    raise FileNotFoundError(f"no templates/ and schemas/ in {homes[0]} or {homes[1]}")
