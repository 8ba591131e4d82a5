"""The first process of a rehearsal's namespaces: starts the others, and takes them along.

Run as a script on the standard library alone, as process 1 of a process namespace and root of its
user namespace. It talks over the socket it got as standard input: one JSON message a packet, with
the number of the request in its answer. When that socket closes, however its owner ended, this
process exits, and the kernel kills all others.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_PACKET_BYTES = 2**20
_CONNECT_SECONDS = 5.0


class Holder:
    """Answers one request after the other; tells unasked which of its processes ended."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}

    def serve(self) -> None:
        """Work until the other end is gone."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # A handler, not SIG_IGN: that would be inherited by every process started here.
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        while True:
            ready, _, _ = select.select([self.control.fileno(), woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
            self._reap()
            if self.control.fileno() in ready:
                packet = self.control.recv(_PACKET_BYTES)
                if not packet:
                    return
                self._answer(json.loads(packet))

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                name, process = self.running.pop(pid, ("", None))
                if process is not None:
                    process.returncode = os.waitstatus_to_exitcode(status)
                    self.tell({"ended": name, "exit_code": process.returncode})

    def _answer(self, request: dict[str, Any]) -> None:
        number = request.pop("request")
        connection: socket.socket | None = None
        try:
            match request.pop("do"):
                case "start":
                    self._start(**request)
                case "signal":
                    self._signal(**request)
                case "connect":
                    # Sockets stay in the network they were made in, so one can be handed out.
                    address = ("127.0.0.1", request["port"])
                    connection = socket.create_connection(address, timeout=_CONNECT_SECONDS)
        except OSError as error:
            self.tell({"answers": number, "error": error.strerror or str(error)})
        else:
            self.tell({"answers": number}, connection)
        finally:
            if connection is not None:
                connection.close()

    def _start(
        self, name: str, argv: list[str], environment: dict[str, str], folder: str, log: str
    ) -> None:
        with Path(log).open("ab") as stream:
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running[process.pid] = (name, process)

    def _signal(self, name: str, number: int) -> None:
        for pid, (running, _) in self.running.items():
            if running == name:
                with suppress(ProcessLookupError):
                    os.killpg(pid, number)

    def tell(self, message: dict[str, Any], passed: socket.socket | None = None) -> None:
        """Send a message, and an open connection along with it."""
        packet = json.dumps(message).encode("ascii")
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.control, [packet], [passed.fileno()] if passed else [])


def _bring_up_loopback() -> None:
    """Set the interface's flag itself, so that no ``ip`` is needed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def main() -> None:
    """Prepare the namespaces, say so, and serve."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    holder = Holder(control)
    try:
        _bring_up_loopback()
        socket.sethostname("localhost")  # the one name that resolves without a network
    except OSError as error:
        holder.tell({"error": error.strerror or str(error)})
        return
    holder.tell({"ready": os.getpid()})
    holder.serve()


if __name__ == "__main__":
    main()
