"""A real server for tests: a process of its own on 127.0.0.1, with a workspace of one small track."""

import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from tests.forking import ForkedProcess
from tests.leaderboards.examples import HEFT_EDGES, HEFT_NS, canonical
from tests.leaderboards.serving.forked_server import start_server

from opmark.core.workspace import ROOMS
from opmark.leaderboards.problem.files import save_problem

PROBLEMS = ("a", "b", "c", "d")
# Runs without a sandbox, so that it can write down each run, and waits where a file tells it to.
PROGRAM = """
import json, os, sys, time
problem = json.loads(sys.stdin.readline())
with open("{runs}", "a") as runs:
    runs.write(problem["name"] + "\\n")
while os.path.exists("{runs}.wait-" + problem["name"]):
    time.sleep(0.05)
device = problem["cluster"]["devices"][0]["name"]
print(json.dumps({{"device": {{unit["name"]: device for unit in problem["units"]}}}}))
"""
BUDGET_S = 60
# The first tasks of the HEFT paper: the reference of each twin is found at once.
PROBLEM = canonical(HEFT_NS[:5], {pair: size for pair, size in HEFT_EDGES.items() if max(pair) <= 5})


@dataclass
class LiveServer:
    """The server of the workspace `root`; it may be started, killed and started again.

    It is forked from a process that has imported everything, unless `real` commands start it and its processes.
    """

    root: Path
    options: tuple[str, ...] = ()
    port: int = 0
    real: bool = False
    process: "subprocess.Popen[bytes] | ForkedProcess | None" = None
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60, trust_env=False))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["--workspace", str(self.root), "leaderboards", "serve"]
        words += ["--port", str(self.port), "--sandbox", "none", "--i-trust-this", *self.options]
        if self.real:
            self.process = subprocess.Popen([sys.executable, "-m", "opmark", *words], cwd=self.root)
        else:
            self.process = start_server(words, self.root)
        self.wait(lambda: self.client.get(f"{self.url}/api/health").status_code == 200)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        return code

    def send(self, content: bytes, key: str = "", **query: str) -> httpx.Response:
        """Upload an archive as the body of a request."""
        headers = {"Content-Type": "application/gzip"} | ({"Authorization": f"Bearer {key}"} if key else {})
        return self.client.post(f"{self.url}/api/submissions", content=content, headers=headers, params=query)

    def state(self, wanted: str) -> dict[str, Any]:
        """A submission as JSON."""
        return dict(self.client.get(f"{self.url}/api/submissions/{wanted}").json())

    def until(self, wanted: str, state: str) -> dict[str, Any]:
        """A submission once it has a state."""
        self.wait(lambda: self.state(wanted)["state"] == state)
        return self.state(wanted)

    def wait(self, happened: Callable[[], bool]) -> None:
        """Wait until something is so; the test's own time limit ends it."""
        while True:
            assert self.process is None or self.process.poll() is None, "the server has ended"
            try:
                if happened():
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)


def workspace_in(folder: Path) -> Path:
    """A workspace with the track `t` of four problems."""
    for room in ROOMS:
        (folder / room).mkdir(parents=True)
    track = folder / "leaderboards" / "t"
    track.mkdir()
    (track / "track.yaml").write_text(f"schema: 1\ntitle: A small track\nversion: 1.0.0\nbudget_s: {BUDGET_S}\n")
    for name in PROBLEMS:
        problem = replace(PROBLEM, name=name)
        save_problem(problem, track / ("validation" if name == "d" else "problems") / f"{name}.json")
    return folder


def upload(name: str, runs: Path, *, more: str = "") -> bytes:
    """A submission as tar.gz that writes the problems it runs on into the file `runs`."""
    manifest = f"schema: 1\nname: {name}\ntitle: One\nauthors: [A]\nlicense: MIT\ncommand: [python3, -S, main.py]\n"
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for file, text in (("submission.yaml", manifest), ("main.py", PROGRAM.format(runs=runs) + more)):
            item = tarfile.TarInfo(f"{name}/{file}")
            item.size = len(text.encode())
            archive.addfile(item, io.BytesIO(text.encode()))
    return written.getvalue()


def lives(process: int) -> bool:
    """True while a process runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
