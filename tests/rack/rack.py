"""The rack's verbs: bring it up, take it down, and break parts of it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rack import configuration, processes
from tests.rack.layout import Layout, RackError, check, saved_layout
from tests.rack.packages import install_missing
from tests.rack.processes import Daemon, waited

_UP_STATES = {"idle", "alloc", "mix", "comp", "allocated", "mixed", "completing"}


class Rack:
    """One rack, by the layout it has or is to have."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    @classmethod
    def at(cls, directory: Path) -> Rack:
        """The rack that was set up in a directory; raises RackError where there is none."""
        layout = saved_layout(directory)
        if layout is None:
            raise RackError(f"no rack in {directory}; bring one up first")
        return cls(layout)

    def up(self) -> str:
        """Start whatever does not run, wait until every node takes jobs; what it took, as text."""
        check(self.layout)
        if os.getuid() != 0:
            raise RackError("only root can run several nodes on one machine")
        with self._locked():
            began = time.monotonic()
            installed = install_missing(self.layout)
            ready = time.monotonic()
            if self._pid("slurmctld") is None:
                self._prepare()
            for name in self._daemons_in_order():
                if self._pid(name) is None:
                    self._start(name)
            self._wait_for_nodes()
            took = time.monotonic() - ready
        packages = f", {len(installed)} packages in {ready - began:.1f} s" if installed else ""
        return f"{len(self.layout.node_names)} nodes idle in {took:.1f} s{packages}"

    def down(self) -> None:
        """Stop every daemon and whatever their jobs left running; state and logs stay."""
        with self._locked():
            if self._pid("slurmctld") is not None:
                self._end_jobs()
            self._stop("slurmctld")
            self._kill_nodes()
            for name in ("slurmdbd", "mariadbd", "munged"):
                self._stop(name)
            configuration.remove_groups(self.layout)

    def clean(self) -> None:
        """Kill everything and delete the directory: nothing need be saved, job ids start anew."""
        with self._locked():
            names = [n for n in self._daemons_in_order() if not n.startswith("slurmd.")]
            processes.kill_all(pid for name in names if (pid := self._pid(name)) is not None)
            self._kill_nodes()
            waited(lambda: not any(self._pid(name) for name in names), 5)
            configuration.remove_groups(self.layout)
            shutil.rmtree(self.layout.directory)

    def _kill_nodes(self) -> None:
        """A slurmd has nothing to save, and eighteen orderly ends take seconds."""
        names = [f"slurmd.{node}" for node in self.layout.node_names]
        processes.kill_all(pid for name in names if (pid := self._pid(name)) is not None)
        processes.kill_all(self._job_processes(None))
        waited(lambda: not self._job_processes(None), 5)

    def start(self, part: str) -> None:
        """Start slurmctld, slurmdbd or a node again."""
        name = self._name(part)
        self._start(name)
        if name.startswith("slurmd."):
            waited(lambda: self._node_states().get(part) in _UP_STATES, 10, every=0.2)

    def stop(self, part: str) -> None:
        """End slurmctld, slurmdbd or a node's slurmd in an orderly way."""
        self._stop(self._name(part))

    def kill(self, part: str) -> None:
        """End slurmctld, slurmdbd or a node's slurmd with SIGKILL; the node's jobs live on."""
        processes.kill(self.layout.run, self._name(part))

    def lose(self, node: str) -> None:
        """A node goes dark: its slurmd and everything its jobs run there die at once."""
        name = self._name(node)
        pid = self._pid(name)
        processes.kill_all({*([pid] if pid else []), *self._job_processes(node)})
        (self.layout.run / f"{name}.process").unlink(missing_ok=True)

    def resume_nodes(self) -> None:
        """What an admin does after a fault: give drained and down nodes back to the scheduler."""
        for node, state in self._node_states().items():
            if state not in _UP_STATES:
                self._ask("scontrol", "update", f"nodename={node}", "state=resume")

    def status(self) -> Iterator[str]:
        """What runs, one line a daemon, then the nodes by state."""
        for name in self._daemons_in_order():
            pid = self._pid(name)
            yield f"{name} {f'pid {pid}' if pid else 'down'}"
        yield from self._ask("sinfo", "-o", "%P %a %D %t %G").splitlines()

    def is_up(self) -> bool:
        """Whether all its daemons run."""
        return all(self._pid(name) is not None for name in self._daemons_in_order())

    def runs(self) -> bool:
        """Whether any of its daemons runs: then its size is settled."""
        return any(self._pid(name) is not None for name in self._daemons_in_order())

    def _prepare(self) -> None:
        layout = self.layout
        for folder in (layout.etc, layout.run, layout.log, layout.state / "slurmctld"):
            folder.mkdir(parents=True, exist_ok=True)
        configuration.write_configuration(layout)
        layout.save()
        if layout.accounting and not (layout.database / "mysql").exists():
            self._run(
                "mariadb-install-db",
                "--no-defaults",
                "--user=root",
                f"--datadir={layout.database}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            )

    def _daemons_in_order(self) -> list[str]:
        accounting = ["mariadbd", "slurmdbd"] if self.layout.accounting else []
        nodes = [f"slurmd.{node}" for node in self.layout.node_names]
        return ["munged", *accounting, "slurmctld", *nodes]

    def _name(self, part: str) -> str:
        if part in {"slurmctld", "slurmdbd"}:
            return part
        if part not in self.layout.node_names:
            raise RackError(f"{part} is no part of this rack: slurmctld, slurmdbd or a node")
        return f"slurmd.{part}"

    def _start(self, name: str) -> None:
        processes.start(self._daemon(name), self.layout.run, self.layout.log)
        if name.startswith("slurmd."):
            return
        waited(lambda: self._is_ready(name) or self._pid(name) is None, 40)
        if self._pid(name) is None or not self._is_ready(name):
            raise RackError(f"{name} did not start; see {self.layout.log}")
        if name == "mariadbd":
            self._run(*self._sql("create database if not exists slurm_acct_db"))
        if name == "slurmdbd" and "rack" not in self._ask("sacctmgr", "-nP", "list", "cluster"):
            self._run("sacctmgr", "-i", "add", "cluster", "rack")

    def _is_ready(self, name: str) -> bool:
        if name == "munged":
            return self.layout.munge_socket.exists()
        if name == "slurmctld":
            return "is UP" in self._ask("scontrol", "ping")
        accounts = ("sacctmgr", "-n", "list", "cluster")
        return self._call(self._sql("select 1") if name == "mariadbd" else accounts).returncode == 0

    def _daemon(self, name: str) -> Daemon:
        layout = self.layout
        environment = _environment(layout)
        if name == "munged":
            return Daemon(name=name, command=self._munged(), environment=environment)
        if name == "mariadbd":
            return Daemon(name=name, command=self._mariadbd(), environment=environment)
        if name == "slurmdbd":
            environment |= {"MYSQL_UNIX_PORT": str(layout.run / "mariadbd.sock")}
            return Daemon(name=name, command=("slurmdbd", "-D"), environment=environment)
        conf = str(layout.slurm_conf)
        if name == "slurmctld":
            command = ("slurmctld", "-D", "-i", "-f", conf)
            return Daemon(name=name, command=command, environment=environment)
        node = name.removeprefix("slurmd.")
        (layout.state / name).mkdir(parents=True, exist_ok=True)
        steps = ("-d", str(layout.slurm / "usr/sbin/slurmstepd")) if layout.slurm else ()
        command = ("slurmd", "-D", "-f", conf, "-N", node, *steps)
        return Daemon(name=name, command=command, environment=environment)

    def _munged(self) -> tuple[str, ...]:
        layout = self.layout
        return (
            "munged",
            "--foreground",
            "--force",
            "--num-threads=4",
            f"--key-file={layout.etc / 'munge.key'}",
            f"--socket={layout.munge_socket}",
            f"--pid-file={layout.run / 'munged.pid'}",
            f"--log-file={layout.log / 'munged.log'}",
            f"--seed-file={layout.state / 'munge.seed'}",
        )

    def _mariadbd(self) -> tuple[str, ...]:
        layout = self.layout
        return (
            "mariadbd",
            "--no-defaults",
            "--user=root",
            f"--datadir={layout.database}",
            f"--socket={layout.run / 'mariadbd.sock'}",
            f"--pid-file={layout.run / 'mariadbd.pid'}",
            f"--log-error={layout.log / 'mariadbd.log'}",
            "--skip-networking",
            "--skip-log-bin",
            "--performance-schema=OFF",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--innodb-lock-wait-timeout=900",
            "--max-connections=40",
        )

    def _sql(self, statement: str) -> tuple[str, ...]:
        socket = str(self.layout.run / "mariadbd.sock")
        return ("mariadb", "--no-defaults", "-u", "root", "-S", socket, "-e", statement)

    def _wait_for_nodes(self) -> None:
        wanted = set(self.layout.node_names)

        def are_up() -> bool:
            states = self._node_states()
            return {n for n, state in states.items() if state in _UP_STATES} >= wanted

        if are_up():
            return
        self.resume_nodes()  # a drain mark outlives the slurmctld that set it
        if not waited(are_up, 60, every=0.1):
            late = {n: s for n, s in self._node_states().items() if s not in _UP_STATES}
            raise RackError(f"nodes that are not up: {late}; see {self.layout.log}")

    def _node_states(self) -> dict[str, str]:
        rows = self._ask("sinfo", "-h", "-N", "-p", "batch", "-o", "%N %t").split("\n")
        return dict(row.split() for row in rows if len(row.split()) == 2)

    def _end_jobs(self) -> None:
        self._ask("scancel", "--full", "--state=RUNNING", "--user=root", "--signal=KILL")
        self._ask("scancel", "--user=root")
        running = ("squeue", "-h", "-t", "R,CG,S", "-o", "%i")
        waited(lambda: not self._ask(*running).strip(), 5, every=0.1)

    def _job_processes(self, node: str | None) -> set[int]:
        groups = configuration.freezer_groups(self.layout, node)
        return processes.job_processes(self.layout.slurm_conf, node, groups)

    def _pid(self, name: str) -> int | None:
        return processes.pid_of(self.layout.run, name)

    def _stop(self, name: str) -> None:
        processes.stop(self.layout.run, name)

    def _ask(self, *command: str) -> str:
        return self._call(command).stdout

    def _run(self, *command: str) -> None:
        done = self._call(command)
        if done.returncode:
            raise RackError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")

    def _call(self, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        environment = _environment(self.layout)
        try:
            return subprocess.run(
                command, capture_output=True, text=True, env=environment, check=False, timeout=30
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", "no answer in 30 s")
        except FileNotFoundError as error:
            raise RackError(f"no {command[0]} on PATH") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.layout.directory.mkdir(parents=True, exist_ok=True)
        self.layout.log.mkdir(exist_ok=True)
        with (self.layout.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _environment(layout: Layout) -> dict[str, str]:
    """This process's environment without what would lead Slurm's commands elsewhere."""
    prefixes = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {**kept, **layout.environment}
