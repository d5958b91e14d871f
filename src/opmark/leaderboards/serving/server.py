"""Start the server, and end it soundly: requests end, the running job is queued again, nothing is half written."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import MissingExtraError, UnavailableError, UsageError
from opmark.leaderboards.serving.scoring_loop import ScoringLoop, ServerFolders
from opmark.leaderboards.serving.submission_queue import ServerLimits, SubmissionQueue
from opmark.leaderboards.submissions.sandbox.choice import sandbox as sandbox_called

if TYPE_CHECKING:
    from fastapi import FastAPI

# Requests that are still answered after SIGTERM.
REQUESTS_END_WITHIN_S = 10
# Each may hold one upload in memory.
CONNECTIONS_AT_MOST = 32
# A connection that sends no whole head of a request for so long makes room for others.
REQUEST_BEGINS_WITHIN_S = 20.0


def serve(
    leaderboards: Path,
    state: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    jobs: int = 1,
    sandbox: str = "bubblewrap",
    trusted: bool = False,
    limits: ServerLimits | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; what was queued or running continues with the next server of this `state`.

    Raises `MissingExtraError` without the extra `serve`, `UnavailableError` without a sandbox or for an address that is
    taken, `UsageError` where another server uses `state`.
    """
    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("serving needs FastAPI and uvicorn", hint="pip install 'opmark[serve]'") from error
    from opmark.leaderboards.serving.application import UploadDesk, application

    sandbox_called(sandbox, trusted=trusted)
    folders = ServerFolders(leaderboards=leaderboards, state=state)
    with _alone(state):
        queue = SubmissionQueue(folders.queue, limits or ServerLimits())
        loop = ScoringLoop(folders=folders, queue=queue, jobs=jobs, sandbox=sandbox, trusted=trusted)
        app = application(UploadDesk(loop))
        _with_loop(app, loop)
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_level="warning",
            timeout_graceful_shutdown=REQUESTS_END_WITHIN_S,
            limit_concurrency=CONNECTIONS_AT_MOST,
            server_header=False,
            http=_patient_protocol(REQUEST_BEGINS_WITHIN_S),
        )
        try:
            uvicorn.Server(config).run()
        except SystemExit as error:  # uvicorn has said on standard error which address it could not take
            raise UnavailableError(f"cannot listen on {host}:{port}", hint="choose another --port") from error


def _patient_protocol(seconds: float) -> Any:
    """uvicorn's protocol, which has no such limit: a connection without a request for so many seconds is closed."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PatientProtocol(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(seconds, self._look, None)

        def _look(self, before: Any) -> None:
            """Close the connection if nothing was requested since it was last looked at, and nothing is answered."""
            if self.transport.is_closing():
                return
            if self.cycle is before and (before is None or before.response_complete):
                self.transport.close()
                return
            self.loop.call_later(seconds, self._look, self.cycle)

    return PatientProtocol


def _with_loop(app: "FastAPI", loop: ScoringLoop) -> None:
    """Let the loop begin when the server does, and end before it."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        from fastapi.concurrency import run_in_threadpool

        loop.start()
        try:
            yield
        finally:
            await run_in_threadpool(loop.stop)

    app.router.lifespan_context = lifespan


@contextlib.contextmanager
def _alone(state: Path) -> Any:
    """Hold the server's folder. Raises `UsageError` where another server has it."""
    from filelock import FileLock, Timeout

    state.mkdir(parents=True, exist_ok=True)
    lock = FileLock(state / "server.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError("another server uses this folder", hint="give this one another --state") from None
    try:
        yield
    finally:
        lock.release()
