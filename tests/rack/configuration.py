"""The configuration files of a rack: what this Slurm needs to believe in GB300 nodes."""

from __future__ import annotations

import os
import secrets
import socket
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.rack.layout import PLUGIN_FOLDER, Layout, RackError

_STUB = Path(__file__).with_name("spank_stub.c")
_CGROUPS = Path("/sys/fs/cgroup")
# A gres.conf without device nodes makes slurmd drop the GPUs. These exist everywhere.
_STAND_INS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")


def write_configuration(layout: Layout) -> None:
    """Write every configuration file and build the plugin with the stubbed options."""
    version = slurm_version(layout)
    has_blocks = version >= (24, 5)
    tracks = _can_use("freezer")
    limits = tracks and _can_use("memory")
    etc = layout.etc
    _write(etc / "slurm.conf", _slurm_conf(layout, tracks=tracks, limits=limits, blocks=has_blocks))
    _write(etc / "topology.conf", _blocks(layout) if has_blocks else _switches(layout))
    _write(etc / "gres.conf", _gres(layout))
    _write(etc / "cgroup.conf", _cgroup(version, tracks=tracks, limits=limits))
    _write(etc / "plugstack.conf", [f"optional {_stub(layout, own_segment=not has_blocks)}"])
    if layout.accounting:
        _write_secret(etc / "slurmdbd.conf", _slurmdbd_conf(layout))
    if not (etc / "munge.key").exists():
        _write_secret(etc / "munge.key", [secrets.token_hex(64)])


def slurm_version(layout: Layout) -> tuple[int, int]:
    """The version of the Slurm that the rack runs, as (22, 5)."""
    environment = {**os.environ, **layout.environment}
    command = ["slurmctld", "-V"]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    year, month = answer.stdout.split()[-1].split(".")[:2]
    return int(year), int(month)


def freezer_groups(layout: Layout, node: str | None = None) -> list[Path]:
    """The control groups of a node's jobs, or of all the rack's, where there are any."""
    return sorted((_CGROUPS / "freezer").glob(f"slurm_{node or f'{layout.name}-r*'}"))


def remove_groups(layout: Layout) -> None:
    """Remove the empty control groups that the rack's nodes leave behind."""
    for controller in ("freezer", "memory"):
        for group in (_CGROUPS / controller).glob(f"slurm_{layout.name}-r*"):
            folders = [group, *(path for path in group.rglob("*") if path.is_dir())]
            for folder in sorted(folders, key=lambda path: -len(path.parts)):
                try:
                    folder.rmdir()
                except OSError:  # a process in it is still dying
                    break


def hostname() -> str:
    """The machine's short name: slurmdbd insists on it, an address is not enough."""
    return socket.gethostname().partition(".")[0]


def _slurm_conf(layout: Layout, *, tracks: bool, limits: bool, blocks: bool) -> list[str]:
    run, log, state = layout.run, layout.log, layout.state
    lines = {
        "ClusterName": "rack",
        "SlurmctldHost": f"{hostname()}(127.0.0.1)",
        "SlurmctldPort": layout.port,
        "SlurmUser": "root",
        "SlurmdUser": "root",
        # A job that is requeued waits until its old credential expires; two minutes by default.
        "AuthInfo": f"socket={layout.munge_socket},cred_expire=10",
        "StateSaveLocation": state / "slurmctld",
        "SlurmdSpoolDir": state / "slurmd.%n",
        "SlurmctldPidFile": run / "slurmctld.pid",
        "SlurmdPidFile": run / "slurmd.%n.pid",
        "SlurmctldLogFile": log / "slurmctld.log",
        "SlurmdLogFile": log / "slurmd.%n.log",
        "ProctrackType": "proctrack/cgroup" if tracks else "proctrack/linuxproc",
        "TaskPlugin": "task/cgroup" if limits else "task/none",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "task=2",
        # The nodes claim more than the machine has.
        "SlurmdParameters": "config_overrides",
        "ReturnToService": 2,
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": layout.memory_mb // layout.cpus,
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "bf_interval=1,bf_continue,batch_sched_delay=0,sched_interval=2",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "SlurmctldParameters": "preempt_send_user_signal",
        "JobRequeue": 1,
        "MaxArraySize": layout.max_array_size,
        "MaxJobCount": 10_000,
        "MinJobAge": 300,
        "KillWait": 5,
        "InactiveLimit": 0,
        "SlurmctldTimeout": 10,
        "SlurmdTimeout": 20,
        "MessageTimeout": 10,
        "BatchStartTimeout": 20,
        "UnkillableStepTimeout": 60,
        "TCPTimeout": 5,
        "TreeWidth": 64,
        "GresTypes": "gpu",
        "TopologyPlugin": "topology/block" if blocks else "topology/tree",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "info",
    }
    if not limits:
        lines["JobAcctGatherParams"] = "OverMemoryKill"
    if layout.slurm is not None:
        lines["PluginDir"] = layout.slurm / PLUGIN_FOLDER
    if layout.accounting:
        lines |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": layout.accounting_port,
            "AccountingStoragePass": layout.munge_socket,
            "AccountingStorageTRES": "gres/gpu",
        }
    else:
        lines["AccountingStorageType"] = "accounting_storage/none"
    return [*(f"{key}={value}" for key, value in lines.items()), *_nodes(layout), *_PARTITIONS]


_COMMON = "MaxTime=UNLIMITED DefaultTime=60 State=UP Nodes=ALL"
_PARTITIONS = (
    f"PartitionName=batch Default=YES PriorityTier=10 PreemptMode=REQUEUE GraceTime=20 {_COMMON}",
    f"PartitionName=urgent PriorityTier=100 PreemptMode=OFF {_COMMON}",
)


def _nodes(layout: Layout) -> Iterable[str]:
    for rack in range(layout.racks):
        first = layout.node_port(rack)
        yield (
            f"NodeName={layout.node_range(rack)} NodeAddr=127.0.0.1 NodeHostname={hostname()}"
            f" Port=[{first}-{first + layout.nodes - 1}] CPUs={layout.cpus} Boards=1"
            f" SocketsPerBoard=2 CoresPerSocket={layout.cpus // 2} ThreadsPerCore=1"
            f" RealMemory={layout.memory_mb} Gres=gpu:gb300:{layout.gpus} Feature=gb300,r{rack}"
            " State=UNKNOWN"
        )


def _blocks(layout: Layout) -> list[str]:
    blocks = [f"BlockName=r{rack} Nodes={layout.node_range(rack)}" for rack in range(layout.racks)]
    return [*blocks, f"BlockSizes={layout.nodes}"]


def _switches(layout: Layout) -> list[str]:
    racks = [f"SwitchName=r{rack} Nodes={layout.node_range(rack)}" for rack in range(layout.racks)]
    return [*racks, f"SwitchName=spine Switches=r[0-{layout.racks - 1}]"]


def _gres(layout: Layout) -> list[str]:
    files = _device_files(layout)
    return [
        f"NodeName={layout.node_range(rack)} Name=gpu Type=gb300 File={files} Flags=nvidia_gpu_env"
        for rack in range(layout.racks)
    ]


def _device_files(layout: Layout) -> str:
    """Device nodes for the GPUs, which nothing opens: plain files would set no CUDA variables."""
    layout.devices.mkdir(exist_ok=True)
    try:
        for gpu in range(layout.gpus):
            device = layout.devices / f"nvidia{gpu}"
            if not device.exists():
                os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        return ",".join(_STAND_INS[: layout.gpus])
    return f"{layout.devices}/nvidia[0-{layout.gpus - 1}]"


def _cgroup(version: tuple[int, int], *, tracks: bool, limits: bool) -> list[str]:
    plugin = "cgroup/v1" if tracks or version < (23, 2) else "disabled"
    lines = [f"CgroupPlugin={plugin}", f"CgroupMountpoint={_CGROUPS}"]
    if limits:
        lines += ["ConstrainRAMSpace=yes", "AllowedRAMSpace=100"]
        lines += ["ConstrainCores=no", "ConstrainDevices=no"]
    return lines


def _slurmdbd_conf(layout: Layout) -> list[str]:
    lines = [
        f"DbdHost={hostname()}",
        "DbdAddr=127.0.0.1",
        f"DbdPort={layout.accounting_port}",
        "SlurmUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket}",
        f"PidFile={layout.run / 'slurmdbd.pid'}",
        f"LogFile={layout.log / 'slurmdbd.log'}",
        "DebugLevel=info",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",  # the database has a socket in the rack's own folder and no network
        "StorageLoc=slurm_acct_db",
    ]
    return lines + ([f"PluginDir={layout.slurm / PLUGIN_FOLDER}"] if layout.slurm else [])


def _can_use(controller: str) -> bool:
    """Whether control groups (version 1) of this kind can be made here."""
    probe = _CGROUPS / controller / f"rack_probe_{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _stub(layout: Layout, *, own_segment: bool) -> Path:
    library = layout.etc / "rack_options.so"
    headers = [f"-I{layout.slurm / 'usr/include'}"] if layout.slurm else []
    macros = ["-DOWN_SEGMENT"] if own_segment else []
    command = ["gcc", "-shared", "-fPIC", *macros, *headers, "-o", str(library), str(_STUB)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise RackError(f"cannot build {_STUB.name}: {built.stderr.strip().splitlines()[-1]}")
    return library


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def _write_secret(path: Path, lines: Iterable[str]) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    _write(path, lines)
