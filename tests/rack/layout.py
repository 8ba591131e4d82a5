"""How large a rack is, what its nodes are called and where its files lie."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

PLUGIN_FOLDER = Path("usr/lib/x86_64-linux-gnu/slurm-wlm")


def default_directory() -> Path:
    """$RACK_DIR, or one folder for each user under the system's temporary folder."""
    fallback = Path(tempfile.gettempdir()) / f"pdrecipe-rack-{os.getuid()}"
    return Path(os.environ.get("RACK_DIR") or fallback).absolute()


class RackError(Exception):
    """The rack cannot be what was asked; the message says why and where to look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A rack's size and place.

    ``port`` is the first of 10 + racks * nodes TCP ports on loopback; two racks at once on one
    machine need another ``directory``, ``port`` and ``name``. ``slurm`` is the folder of a Slurm
    that ``slurm24`` unpacked, None for the system's. ``block_nodes`` is the NVLink domain.
    """

    directory: Path
    name: str = "gb300"
    racks: int = 1
    nodes: int = 18
    port: int = 16800
    accounting: bool = True
    max_array_size: int = 1001
    slurm: Path | None = None
    gpus: int = field(default=4)
    cpus: int = field(default=144)
    memory_mb: int = field(default=900_000)

    @property
    def etc(self) -> Path:
        return self.directory / "etc"

    @property
    def run(self) -> Path:
        return self.directory / "run"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def database(self) -> Path:
        return self.directory / "db"

    @property
    def devices(self) -> Path:
        return self.directory / "dev"

    @property
    def slurm_conf(self) -> Path:
        return self.etc / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        return self.run / "munge.socket"

    @property
    def accounting_port(self) -> int:
        return self.port + 1

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(
            f"{self.name}-r{rack}-n{node:02d}"
            for rack in range(self.racks)
            for node in range(1, self.nodes + 1)
        )

    def node_range(self, rack: int) -> str:
        """The nodes of one rack as Slurm writes a list of hosts."""
        return f"{self.name}-r{rack}-n[01-{self.nodes:02d}]"

    def node_port(self, rack: int) -> int:
        """The port of a rack's first slurmd; its other nodes have the following ones."""
        return self.port + 10 + rack * self.nodes

    @property
    def environment(self) -> dict[str, str]:
        """What a client of this rack must have in its environment, and nothing else of Slurm."""
        path = os.environ.get("PATH", "")
        folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        if self.slurm is not None:
            folders = [str(self.slurm / "usr/bin"), str(self.slurm / "usr/sbin"), *folders]
        missing = [folder for folder in folders if folder not in path.split(os.pathsep)]
        joined = os.pathsep.join([*missing, path] if self.slurm else [path, *missing])
        return {"SLURM_CONF": str(self.slurm_conf), "PATH": joined}

    def save(self) -> None:
        """Note the layout in its directory, for the verbs that come after ``up``."""
        document = {**asdict(self), "slurm": str(self.slurm) if self.slurm else None}
        document.pop("directory")
        (self.etc / "layout.json").write_text(json.dumps(document, indent=1) + "\n")


def saved_layout(directory: Path) -> Layout | None:
    """The layout that ``up`` noted, None where no rack was set up."""
    file = directory / "etc" / "layout.json"
    if not file.exists():
        return None
    document = json.loads(file.read_text())
    slurm = Path(document.pop("slurm")) if document["slurm"] else document.pop("slurm")
    return Layout(directory=directory, slurm=slurm, **document)


def check(layout: Layout) -> None:
    """Refuse what Slurm or the kernel would refuse later, less clearly."""
    if not re.fullmatch(r"[a-z][a-z0-9]*", layout.name):
        raise RackError(f"the name {layout.name!r} is not lower-case letters and digits")
    if len(str(layout.munge_socket)) > 90:
        raise RackError(f"{layout.directory} is too long a path for sockets")
