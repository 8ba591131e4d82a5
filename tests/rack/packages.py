"""The Debian packages a rack needs, installed when missing, without starting their services."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.rack.layout import Layout, RackError

_POLICY = Path("/usr/sbin/policy-rc.d")  # exit code 101: Debian's way to forbid starting services


def install_missing(layout: Layout) -> tuple[str, ...]:
    """Install what is not there yet; the packages that were installed."""
    missing = tuple(package for package in _wanted(layout) if not _is_installed(package))
    if missing:
        install = ["apt-get", "install", "-qy", "--no-install-recommends", *missing]
        with _no_services():
            if _apt(layout, install) and (_apt(layout, ["apt-get", "update", "-q"]) or True):
                _installed_or_refused(layout, install)
    return missing


def _installed_or_refused(layout: Layout, install: list[str]) -> None:
    if _apt(layout, install):
        raise RackError(f"apt-get failed: {' '.join(install)}; see {layout.log / 'apt.log'}")


def _wanted(layout: Layout) -> list[str]:
    wanted = ["munge", "gcc", "libc6-dev"]
    if layout.slurm is None:
        wanted += ["slurm-wlm", "slurm-client", "libslurm-dev"]
    if layout.accounting:
        wanted += ["mariadb-server-core", "mariadb-client-core"]
        wanted += ["slurmdbd"] if layout.slurm is None else []
    return wanted


def _is_installed(package: str) -> bool:
    query = ["dpkg-query", "-W", "-f=${Status}", package]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    return answer.stdout.endswith("ok installed")


def _apt(layout: Layout, command: list[str]) -> int:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with (layout.log / "apt.log").open("ab") as log:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, check=False
        ).returncode


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()
