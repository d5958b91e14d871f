"""The web application: uploads, their state and rank as JSON and as pages, and the site of all tracks."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError, OpMarkError, UnknownNameError, UsageError
from opmark.core.files import write_bytes
from opmark.core.reading import LARGE_BYTES, read_json
from opmark.leaderboards.scoring.splits import STANDINGS, stored_standings
from opmark.leaderboards.scoring.track import Track, load_track, track_names
from opmark.leaderboards.serving import web_pages
from opmark.leaderboards.serving.scoring_loop import ScoringLoop
from opmark.leaderboards.serving.submission_queue import QueuedSubmission, RefusedError, hash_of
from opmark.leaderboards.serving.upload_archive import unpack_upload
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.ownership import folder_of, owner_of
from opmark.leaderboards.submissions.pack import digest, pack
from opmark.leaderboards.submissions.signature import own_key

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# A form has a few short fields beside its file.
_FORM_BYTES = 1 << 16
_UNREADY_S = 5


class UploadDesk:
    """Checks an upload, puts it into the queue, and says what became of it."""

    def __init__(self, loop: ScoringLoop) -> None:
        self._loop = loop
        self.queue, self.folders = loop.queue, loop.folders

    def tracks(self) -> list[Track]:
        """All tracks that have problems."""
        names = track_names(self.folders.leaderboards)
        return [track for name in names if (track := load_track(self.folders.leaderboards, name)).problem_paths()]

    def take(self, content: bytes, *, wanted: tuple[str, ...], key: str, address: str) -> tuple[QueuedSubmission, str]:
        """Queue an uploaded folder; returns it with its key. Raises `OpMarkError` naming what is wrong."""
        with tempfile.TemporaryDirectory(prefix="opmark-upload-") as place:
            folder = Path(place) / "submission"
            try:
                unpack_upload(content, folder)
                submission = load_submission(folder)
                archive = pack(submission)
            except OpMarkError as error:
                # the folder's path is the server's and says nothing to the sender
                where = (error.where or "").replace(f"{folder}/", "").replace(str(folder), "")
                raise ContentError(error.message, where=where or None, hint=error.hint) from error
        manifest = submission.manifest
        names = self._tracks_of(wanted or manifest.tracks, manifest.tracks)
        sha256 = digest(archive)
        self._check_owner(manifest.name, names, key)
        found, key = self.queue.add(
            name=manifest.name,
            sha256=sha256,
            tracks=names,
            key=key,
            address=address,
            store=lambda: write_bytes(self.folders.archive(sha256), archive),
        )
        self._loop.wake()
        return found, key

    def state(self, found: QueuedSubmission) -> dict[str, Any]:
        """A submission as JSON; `rank_now` is its rank among the entries of this moment."""
        receipt = None
        if found.receipt is not None:
            rows = [{**row, "rank_now": self._rank(row["track"], found.name)} for row in found.receipt["tracks"]]
            receipt = {**found.receipt, "tracks": rows}
        return {
            "id": found.id,
            "name": found.name,
            "sha256": found.sha256,
            "tracks": found.tracks,
            "state": found.state,
            "ahead": found.ahead,
            "progress": self._loop.progress.get(found.id),
            "received_s": found.received_s,
            "started_s": found.started_s,
            "ended_s": found.ended_s,
            "error": found.error,
            "receipt": receipt,
            "url": f"/submissions/{found.id}",
        }

    def standings(self, name: str) -> Any:
        """The stored standings of a track. Raises `UnknownNameError`, or `RefusedError` where there are none yet."""
        path = load_track(self.folders.leaderboards, name).folder / STANDINGS
        if not path.is_file():
            raise RefusedError(404, "this track has no entry yet")
        return read_json(path, sealed=True, at_most=LARGE_BYTES)

    def _rank(self, track: str, name: str) -> int | None:
        found = stored_standings(self.folders.leaderboards / track)
        return next((row.rank for row in (found.rows if found else ()) if row.name == name), None)

    def _tracks_of(self, wanted: tuple[str, ...], made_for: tuple[str, ...]) -> tuple[str, ...]:
        known = [track.name for track in self.tracks()]
        for name in wanted:
            if name not in known:
                raise UsageError(f"there is no track {name!r}", hint=f"the tracks are {', '.join(known)}")
            if made_for and name not in made_for:
                raise UsageError(f"the submission is made for {', '.join(made_for)}, not for {name}")
        return tuple(sorted(set(wanted))) or tuple(known)

    def _check_owner(self, name: str, tracks: tuple[str, ...], key: str) -> None:
        """An entry that somebody else owns is refused before it waits; scoring checks it again."""
        path = self.folders.owner(hash_of(key))
        mine = own_key(path).public if key and path.is_file() else ""
        for track in tracks:
            owner = owner_of(folder_of(load_track(self.folders.leaderboards, track), name))
            if owner is not None and owner.public_key != mine:
                raise RefusedError(
                    409, f"{name!r} belongs to another key on {track}", hint="choose another name in submission.yaml"
                )


class BodyLimit:
    """ASGI middleware: a body beyond the limit, or one that takes too long, is refused before it is stored.

    The length that a request declares does not matter.
    """

    def __init__(self, app: Any, most_bytes: int, within_s: float) -> None:
        self._app, self._most, self._within_s = app, most_bytes, within_s

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Count the bytes of the body, and its seconds."""
        size, more = 0, True
        until = asyncio.get_running_loop().time() + self._within_s

        async def counted() -> Message:
            nonlocal size, more
            if not more:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(408, f"the upload took more than {self._within_s:g} s") from None
            if message["type"] == "http.disconnect":
                raise RefusedError(400, "the upload broke off")
            size += len(message.get("body", b""))
            more = bool(message.get("more_body"))
            if size > self._most:
                raise RefusedError(413, f"the upload is larger than {self._most >> 20} MiB")
            return message

        await self._app(scope, counted, send)


class HeadAsGet:
    """ASGI middleware: HEAD is answered as GET, without the body; routes of FastAPI know GET alone."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Change the method of a HEAD request, and empty the body of its answer."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            is_body = message["type"] == "http.response.body"
            await send({**message, "body": b""} if is_body else message)

        await self._app({**scope, "method": "GET"}, receive, headed)


def application(desk: UploadDesk) -> "FastAPI":
    """The application of one server."""
    from fastapi import FastAPI, Request
    from fastapi.staticfiles import StaticFiles

    app = FastAPI(title="OpMark leaderboards", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    limits = desk.queue.limits
    app.add_middleware(HeadAsGet)
    app.add_middleware(BodyLimit, most_bytes=limits.upload_bytes + _FORM_BYTES, within_s=limits.upload_s)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Callable[[Request], Awaitable["Response"]]) -> "Response":
        answer = await call_next(request)
        answer.headers.update(HEADERS)
        return answer

    @app.exception_handler(OpMarkError)
    async def refuse(request: Request, error: Exception) -> "Response":
        assert isinstance(error, OpMarkError)
        return _refusal(request, error)

    _add_interface(app, desk)
    _add_pages(app, desk)
    desk.folders.site.mkdir(parents=True, exist_ok=True)
    app.mount("/", StaticFiles(directory=desk.folders.site, html=True))
    return app


def _add_interface(app: "FastAPI", desk: UploadDesk) -> None:
    """The JSON interface, below `/api`."""
    from fastapi import Request, Response
    from fastapi.concurrency import run_in_threadpool

    @app.get("/api/health")
    def health() -> dict[str, str]:
        return {"state": "up"}

    @app.get("/api/tracks")
    def tracks() -> list[dict[str, Any]]:
        return [
            {"name": one.name, "title": one.rules.title, "version": one.rules.version, "url": f"/{one.name}/"}
            for one in desk.tracks()
        ]

    @app.get("/api/tracks/{name}/standings")
    def standings(name: str) -> Any:
        return desk.standings(name)

    @app.get("/api/submissions")
    def submissions() -> list[dict[str, Any]]:
        return [web_pages.public_state(found) for found in desk.queue.newest()]

    @app.get("/api/submissions/{wanted}")
    def submission(wanted: str) -> dict[str, Any]:
        return desk.state(desk.queue.find(wanted))

    @app.delete("/api/submissions/{wanted}")
    def withdraw(wanted: str, request: Request) -> dict[str, Any]:
        desk.queue.withdraw(wanted, _bearer(request))
        return desk.state(desk.queue.find(wanted))

    @app.post("/api/submissions", status_code=202)
    async def submit(request: Request, response: Response) -> dict[str, Any]:
        content, chosen, form_key = await _upload(request)
        key = _bearer(request) or form_key
        found, owner = await run_in_threadpool(
            desk.take, content, wanted=chosen, key=key, address=request.client.host if request.client else ""
        )
        response.headers["Location"] = f"/api/submissions/{found.id}"
        return desk.state(found) | ({} if key else {"key": owner})


def _add_pages(app: "FastAPI", desk: UploadDesk) -> None:
    """The pages beside those of the site."""
    from fastapi import Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.responses import HTMLResponse, RedirectResponse

    @app.get("/", response_class=HTMLResponse)
    def start() -> HTMLResponse:
        path = desk.folders.site / "index.html"
        if path.is_file():
            return HTMLResponse(web_pages.with_links(path.read_text(encoding="utf-8")))
        return HTMLResponse(web_pages.unready_page(desk.tracks()), headers={"Refresh": str(_UNREADY_S)})

    @app.get("/favicon.ico", status_code=204)
    def no_icon() -> None:
        """Browsers ask for one."""

    @app.get("/submit", response_class=HTMLResponse)
    def form() -> str:
        return web_pages.submit_page(desk.tracks(), desk.queue.limits)

    @app.post("/submit", response_model=None)
    async def take(request: Request) -> "Response":
        content, chosen, key = await _upload(request)
        found, owner = await run_in_threadpool(
            desk.take, content, wanted=chosen, key=key, address=request.client.host if request.client else ""
        )
        if key:
            return RedirectResponse(f"/submissions/{found.id}", status_code=303)
        return HTMLResponse(web_pages.submission_page(desk.state(found), key=owner))

    @app.get("/submissions", response_class=HTMLResponse)
    def submissions() -> str:
        return web_pages.queue_page(desk.queue.newest())

    @app.get("/submissions/{wanted}", response_class=HTMLResponse)
    def submission(wanted: str) -> HTMLResponse:
        state = desk.state(desk.queue.find(wanted))
        again = {"Refresh": str(_UNREADY_S)} if state["state"] in web_pages.UNFINISHED else {}
        return HTMLResponse(web_pages.submission_page(state), headers=again)


async def _upload(request: "Request") -> tuple[bytes, tuple[str, ...], str]:
    """Content, chosen tracks and key of an upload: the body itself, or a form with the file `archive`."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await request.body(), tuple(request.query_params.getlist("track")), ""
    from starlette.datastructures import UploadFile
    from starlette.exceptions import HTTPException

    try:
        form = await request.form(max_files=1, max_fields=100, max_part_size=_FORM_BYTES)
    except HTTPException as error:
        raise RefusedError(400, f"the form cannot be read: {error.detail}") from error
    file, key = form.get("archive"), form.get("key")
    if not isinstance(file, UploadFile):
        raise RefusedError(400, "the form has no file called archive")
    chosen = tuple(name for name in form.getlist("track") if isinstance(name, str))
    return await file.read(), chosen, key.strip() if isinstance(key, str) else ""


def _bearer(request: "Request") -> str:
    """The key in the header `Authorization: Bearer KEY`; empty without one. Raises `RefusedError` for another."""
    given = request.headers.get("authorization", "")
    if not given:
        return ""
    scheme, _, key = given.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise RefusedError(401, "the header Authorization has no key", hint="write it like `Authorization: Bearer KEY`")
    return key.strip()


def _refusal(request: "Request", error: OpMarkError) -> "Response":
    """The error as JSON, or as a page for a browser."""
    from fastapi.responses import HTMLResponse, JSONResponse

    status = 404 if isinstance(error, UnknownNameError) else 422
    status = error.status if isinstance(error, RefusedError) else status
    headers = {}
    if isinstance(error, RefusedError) and error.wait_s is not None:
        headers["Retry-After"] = str(max(1, round(error.wait_s)))
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": str(error), "hint": error.hint or ""}, status_code=status, headers=headers)
    return HTMLResponse(web_pages.refusal_page(str(error), error.hint or ""), status_code=status, headers=headers)
