"""Unpacks Debian 13's Slurm 24.11 beside an older system: real --segment, real block topology.

It runs with its own C library, which is written into its programs, and touches nothing outside its
folder (patchelf aside, which is installed when missing). Only for x86-64.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.rack.layout import PLUGIN_FOLDER, RackError

_RELEASE = "trixie"
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_LOADER = "ld-linux-x86-64.so.2"
_PACKAGES = """
slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin libslurm-dev
libc6 libgcc-s1 libstdc++6 libmunge2 libmariadb3 libssl3t64 zlib1g libzstd1 liblz4-1 libxxhash0
libhwloc15 libudev1 libxml2 libnuma1 libpam0g libaudit1 libcap-ng0 libcap2 libdbus-1-3
libsystemd0 libjansson4 libjson-c5 libjwt2 libb64-0d liblua5.1-0 libtinfo6 libreadline8t64
libyaml-0-2
"""


def unpack(folder: Path) -> Path:
    """The folder with that Slurm, unpacked if it is not there yet."""
    done = folder / ".complete"
    if done.exists():
        return folder
    if platform.machine() != "x86_64":
        raise RackError("Slurm 24.11 beside the system's is only for x86-64")
    folder.mkdir(parents=True, exist_ok=True)
    apt = folder / "apt"
    debs = _download(apt)
    for deb in debs:
        _run("dpkg-deb", "-x", str(deb), str(folder))
    shutil.rmtree(apt)
    _name_daemons(folder)
    _use_own_libraries(folder)
    _run(str(folder / "usr/sbin/slurmctld"), "-V")
    done.touch()
    return folder


def _download(apt: Path) -> list[Path]:
    """The packages, fetched by an apt that knows nothing of the system's packages."""
    for part in ("lists/partial", "cache/archives/partial", "debs"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "sources.list").write_text(f"deb [signed-by={key}] {_mirror()} {_RELEASE} main\n")
    settings = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _run("apt-get", *options, "-q", "update")
    _run("apt-get", *options, "-q", "download", *_PACKAGES.split(), cwd=apt / "debs")
    return sorted((apt / "debs").glob("*.deb"))


def _mirror() -> str:
    """The Debian mirror that this system uses."""
    files = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    found = re.findall(r"https?://\S+/debian/?(?=\s|$)", text)
    if not found:
        raise RackError("no Debian mirror in /etc/apt")
    return str(found[0])


def _name_daemons(folder: Path) -> None:
    """The names that Debian's alternatives would give."""
    for name in ("slurmctld", "slurmd", "slurmstepd"):
        target, link = folder / "usr/sbin" / f"{name}-wlm", folder / "usr/sbin" / name
        if target.exists() and not link.exists():
            link.symlink_to(target.name)


def _use_own_libraries(folder: Path) -> None:
    if shutil.which("patchelf") is None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _run("apt-get", "install", "-qy", "--no-install-recommends", "patchelf", env=environment)
    loader = next(folder.rglob(_LOADER))
    path = f"{folder / _LIBRARIES}:{folder / PLUGIN_FOLDER}"
    edits = ("--set-interpreter", str(loader), "--force-rpath", "--set-rpath", path)
    for program in [*folder.glob("usr/bin/*"), *folder.glob("usr/sbin/*")]:
        if program.is_file() and not program.is_symlink() and _is_program(program):
            _run("patchelf", *edits, str(program))


def _is_program(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise RackError(f"{command[0]}: {'; '.join(said)}")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]).absolute())
