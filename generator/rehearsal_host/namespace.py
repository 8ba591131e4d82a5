"""A network of its own that nothing outside reaches, bound to the life of this process.

Anonymous Linux namespaces below one first process (``holder``): a network with the loopback
interface alone, a host name that resolves, and a process tree that the kernel kills as a whole.
Nothing has a name, so nothing is left to be deleted, however this process ends.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from generator.errors import ClusterFailure, Problem

_HOLDER = Path(__file__).with_name("holder.py")
_NAMESPACES = ("--net", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child")
_USER = ("--user", "--map-root-user")
_START_SECONDS = 30.0
_ANSWER_SECONDS = 30.0
_PACKET_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server inside the network said."""

    status: int
    body: str


class ClosedNetwork:
    """The way into the namespaces: a socket to their holder, which also tells what ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._numbers = itertools.count(1)
        self._told: deque[dict[str, Any]] = deque()

    def request(self, do: str, **details: Any) -> socket.socket | None:
        """Ask the holder for something; a connection is returned where one was asked for.

        Raises OSError with what the kernel said, and ClusterFailure where the holder is gone.
        """
        number = next(self._numbers)
        packet = json.dumps({"request": number, "do": do, **details}).encode("ascii")
        try:
            self._control.send(packet)
        except OSError as error:
            raise _gone() from error
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            message, passed = self._receive(deadline)
            if message.get("answers") == number:
                if "error" in message:
                    raise OSError(message["error"])
                return passed
            self._keep(message, passed)

    def ended(self, timeout_s: float = 0.0) -> Iterator[tuple[str, int]]:
        """Names and exit codes of processes that ended since; waits for the first so long."""
        if not self._told and select.select([self._control], [], [], timeout_s)[0]:
            self._collect()
        while self._told:
            message = self._told.popleft()
            yield message["ended"], message["exit_code"]

    def get(self, port: int, path: str, timeout_s: float = 5.0) -> HttpAnswer:
        """An HTTP GET inside the network; raises OSError where nobody answers well in time."""
        connection = self.request("connect", port=port)
        client = http.client.HTTPConnection("localhost", port, timeout=timeout_s)
        client.sock = connection
        try:
            if connection is not None:
                connection.settimeout(timeout_s)
            client.request("GET", path)
            answer = client.getresponse()
            return HttpAnswer(answer.status, answer.read().decode("utf-8", errors="replace"))
        except http.client.HTTPException as error:
            raise OSError(f"port {port} did not answer in HTTP") from error
        finally:
            client.close()

    def _collect(self) -> None:
        while select.select([self._control], [], [], 0)[0]:
            self._keep(*self._receive(time.monotonic() + _ANSWER_SECONDS))

    def _keep(self, message: dict[str, Any], passed: socket.socket | None) -> None:
        """Keep what was told unasked; an interrupted request may have left its answer behind."""
        if passed is not None:
            passed.close()
        if "ended" in message:
            self._told.append(message)

    def _receive(self, deadline: float) -> tuple[dict[str, Any], socket.socket | None]:
        self._control.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._control, _PACKET_BYTES, 1)
        except OSError as error:
            raise _gone() from error
        if not packet:
            raise _gone()
        passed = [socket.socket(fileno=each) for each in descriptors]
        return json.loads(packet), passed[0] if passed else None


@contextmanager
def closed_network() -> Iterator[ClosedNetwork]:
    """Open the namespaces for the block; at its end every process in them is dead.

    A user namespace is tried first, which needs no root; then, for root, none. Raises
    ClusterFailure where this machine has neither.
    """
    if sys.platform != "linux":
        raise ClusterFailure(
            Problem(
                message=f"a rehearsal needs Linux namespaces, and this is {sys.platform}",
                hint="run it on a Linux machine, in a virtual one, or as a Slurm job",
            )
        )
    refusals = []
    for user in (_USER, *([()] if os.geteuid() == 0 else [])):
        control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with control, tempfile.TemporaryFile() as said:
            process = _started(user, inside, said)
            with process:
                try:
                    refusal = _refusal(control, said)
                    if not refusal:
                        yield ClosedNetwork(control)
                        return
                finally:
                    control.close()  # the holder ends, and with it the others
            refusals.append(refusal)
    raise _not_permitted(refusals)


def _started(
    user: tuple[str, ...], inside: socket.socket, said: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the holder in a session of its own, so that Ctrl-C reaches this process alone."""
    argv = ["unshare", *user, *_NAMESPACES, sys.executable, "-I", "-S", str(_HOLDER)]
    with inside:
        try:
            return subprocess.Popen(
                argv,
                stdin=inside.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise ClusterFailure(
                Problem(
                    message="a rehearsal needs the program unshare, and it is not on PATH",
                    hint="install util-linux",
                )
            ) from None


def _refusal(control: socket.socket, said: IO[bytes]) -> str:
    """Why the namespaces cannot be had, empty where the holder is ready."""
    control.settimeout(_START_SECONDS)
    try:
        packet = control.recv(_PACKET_BYTES)
    except TimeoutError:
        return f"no answer within {_START_SECONDS:.0f} seconds"
    if packet:
        return str(json.loads(packet).get("error", ""))
    said.seek(0)
    lines = said.read().decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("unshare: ") if lines else "unshare ended without a word"


def _not_permitted(refusals: list[str]) -> ClusterFailure:
    hint = (
        "let users have namespaces (user.max_user_namespaces above 0,"
        " kernel.apparmor_restrict_unprivileged_userns at 0), or be root;"
        " a container needs the capability SYS_ADMIN"
    )
    refused = " and, as root, ".join(refusals)
    message = f"this machine gives a rehearsal no network of its own: {refused}"
    return ClusterFailure(Problem(message=message, hint=hint))


def _gone() -> ClusterFailure:
    return ClusterFailure(
        Problem(
            message="the process that holds the rehearsal's network is gone or does not answer",
            hint="something killed it; run the rehearsal again",
        )
    )
