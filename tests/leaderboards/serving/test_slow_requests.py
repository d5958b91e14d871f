"""Slow senders: a body that does not end, and connections that never ask, make room for others."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opmark.leaderboards.serving.application import BodyLimit, UploadDesk, application
from opmark.leaderboards.serving.scoring_loop import ScoringLoop, ServerFolders
from opmark.leaderboards.serving.server import _patient_protocol
from opmark.leaderboards.serving.submission_queue import RefusedError, ServerLimits, SubmissionQueue


async def _read_all(_scope: Any, receive: Callable[[], Any], _send: Any) -> None:
    while (await receive()).get("more_body"):
        pass


def test_a_body_that_never_ends_is_refused() -> None:
    async def trickle() -> dict[str, Any]:
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(RefusedError, match=r"took more than 0\.05 s") as caught:
        asyncio.run(BodyLimit(_read_all, most_bytes=10**6, within_s=0.05)({}, trickle, None))  # type: ignore[arg-type]
    assert caught.value.status == 408


def test_waiting_after_the_body_is_no_upload() -> None:
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.1 if sent else 0)
        sent.append("once more")
        return {"type": "http.request", "body": b"x"}

    async def listen(_scope: Any, receive: Callable[[], Any], _send: Any) -> None:
        await receive()
        await receive()

    asyncio.run(BodyLimit(listen, most_bytes=10, within_s=0.05)({}, receive, None))  # type: ignore[arg-type]
    assert len(sent) == 2


async def _served(seconds: float, client: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]) -> Any:
    """The result of `client` on a connection to a server whose answers take a while."""
    import uvicorn
    from uvicorn.server import ServerState

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await asyncio.sleep(3 * seconds)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    config, state = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_keep_alive=60), ServerState()
    protocol = _patient_protocol(seconds)
    server = await asyncio.get_running_loop().create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        found = await client(reader, writer)
        writer.close()
        return found


def test_a_connection_that_never_asks_is_closed() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        return await asyncio.wait_for(reader.read(), 10)

    assert asyncio.run(_served(0.05, trickle)) == b""


def test_an_answer_that_takes_long_is_given_and_an_idle_connection_closed() -> None:
    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return await asyncio.wait_for(reader.read(), 10)

    assert asyncio.run(_served(0.05, ask)).endswith(b"\r\n\r\nok")


def test_an_upload_that_breaks_off_is_no_fault_of_the_server() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(RefusedError, match="the upload broke off"):
        asyncio.run(BodyLimit(_read_all, most_bytes=10, within_s=5)({}, receive, None))  # type: ignore[arg-type]


def test_the_interface_describes_itself(tmp_path: Path) -> None:
    folders = ServerFolders(leaderboards=tmp_path / "leaderboards", state=tmp_path / "state")
    queue = SubmissionQueue(folders.queue, ServerLimits())
    described = application(UploadDesk(ScoringLoop(folders=folders, queue=queue))).openapi()
    assert {"/api/submissions", "/api/tracks", "/submit"} <= set(described["paths"])
