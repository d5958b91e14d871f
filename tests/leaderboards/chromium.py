"""A real browser for tests, driven over the DevTools protocol through a pipe: no driver, no network."""

import json
import os
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run", "--mute-audio")
QUIET += ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage")


def find_chromium() -> str | None:
    """OPMARK_CHROMIUM, or the first browser on PATH."""
    return os.environ.get("OPMARK_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a headless browser; collects what it complains about and what it asks for."""

    def __init__(self, program: str, profile: Path) -> None:
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        ends = [os.dup(end) for end in (command_read, answer_write)]
        while min(ends) < 5:  # 3 and 4 are where the browser expects its pipes
            ends = [os.dup(end) for end in ends]
        shell = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}'
        arguments = [program, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *arguments],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in {command_read, answer_write, *ends}:
            os.close(end)
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, page: Path | str, *, width: int = 1200, height: int = 900, scheme: str = "light") -> None:
        """Show a file or an address in a window of that size and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.load(page)
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def load(self, page: Path | str) -> None:
        """Show a file or an address in the window as it is, and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key on what has the focus."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of the page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Errors and exceptions since the page was opened."""
        found = []
        for event in self.events:
            facts = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(facts["exceptionDetails"]))
            if event["method"] == "Runtime.consoleAPICalled" and facts["type"] in {"error", "warning"}:
                found.append(str(facts["args"]))
            if event["method"] == "Log.entryAdded" and facts["entry"]["level"] in {"error", "warning"}:
                found.append(str(facts["entry"]["text"]))
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [request["request"]["url"] for request in sent]

    def close(self) -> None:
        """End the browser."""
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._read, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message = dict(json.loads(text))
        if "method" in message:
            self.events.append(message)
        return message
