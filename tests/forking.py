"""Processes forked from one that has imported everything: each start saves the imports, seconds of processor time."""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

# Accepts one connection per process: gets its environment and streams, answers its number, and later its exit code.
# The first lines import all that a process needs, and its `main`.
SERVER = """
import gc, json, os, socket, struct, sys, threading

def serve(connection):
    content, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    if not content:  # whoever asked was killed before it could say for what
        connection.close()
        return
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        try:
            connection.sendall(struct.pack("i", child))
        except OSError:
            pass  # it was killed since; its process ends when it finds its input closed
        threading.Thread(target=report, args=(connection, child), daemon=True).start()
        return
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(json.loads(content))
    sys.stdin = open(0)
    code = 1
    try:
        main()
        code = 0
    finally:
        os._exit(code)

def report(connection, child):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        connection.sendall(struct.pack("i", code))
    except OSError:
        pass  # whoever asked is gone
    connection.close()

def end_with_the_tests():
    sys.stdin.read()
    os._exit(0)

# A collection of garbage in a process must not go through all that is imported here, nor copy it.
gc.collect()
gc.freeze()
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
threading.Thread(target=end_with_the_tests, daemon=True).start()
while True:
    serve(listener.accept()[0])
"""
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ForkedProcess:
    """What OpMark uses of `subprocess.Popen`."""

    def __init__(self, address: str, stderr: int, env: Mapping[str, str]) -> None:
        ends = os.pipe(), os.pipe()
        (theirs_in, mine_in), (mine_out, theirs_out) = ends
        self.stdin: IO[bytes] = os.fdopen(mine_in, "wb")
        self.stdout: IO[bytes] = os.fdopen(mine_out, "rb")
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        socket.send_fds(self._connection, [json.dumps(dict(env)).encode()], [theirs_in, theirs_out, stderr])
        os.close(theirs_in)
        os.close(theirs_out)
        self.pid = self._number()
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once the process has ended."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = self._number()
            except TimeoutError:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0) from None
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code, None while the process runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        self.send_signal(9)

    def _number(self) -> int:
        content = self._connection.recv(4, socket.MSG_WAITALL)
        return int.from_bytes(content, sys.byteorder, signed=True)


class ForkServer:
    """Starts when the first process is asked for, with `first`: the imports and the `main` of its processes.

    It ends with this process and its children.
    """

    def __init__(self, first: str) -> None:
        self._first = first
        self._address = ""

    def fork(self, env: Mapping[str, str], stderr: int = 2) -> ForkedProcess:
        """A new process with pipes to its input and output."""
        return ForkedProcess(self.address(), stderr, env)

    def use(self, address: str) -> None:
        """Fork from the server of another process, unless its address is empty."""
        self._address = address or self._address

    def address(self) -> str:
        """The socket of the server, which is started where it does not run yet."""
        if not self._address:
            folder = tempfile.TemporaryDirectory()
            address = str(Path(folder.name) / "socket")
            process = subprocess.Popen(
                [sys.executable, "-c", self._first + SERVER, address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **THREADS},
                start_new_session=True,
            )
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            atexit.register(_end, process, folder)
            self._address = address
        return self._address


def _end(process: "subprocess.Popen[bytes]", folder: "tempfile.TemporaryDirectory[str]") -> None:
    process.communicate()
    folder.cleanup()
