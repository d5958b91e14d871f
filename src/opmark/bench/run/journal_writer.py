"""Write a journal: one writer, one line per record, synced to disk before the next block starts."""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from opmark.core.errors import ContentError, MeasurementError, OpMarkError
from opmark.core.hardware.target import Target
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.journal import Journal, read_journal, read_records
from opmark.core.measurements.lines import line_of
from opmark.core.measurements.records import VALUES, Header, Record, Session
from opmark.core.reading import PACKED


class JournalWriter:
    """The only writer of the journal `path`, as a context manager.

    A new journal starts with `header`. An existing one must have the same header, and loses an incomplete last line.
    Raises `MeasurementError` while another run writes to it, `ContentError` if it is damaged or belongs to another
    suite.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        if path.suffix == PACKED:
            raise OpMarkError(
                "is packed: a run cannot add to it",
                where=str(path),
                hint=f"unpack it with `gunzip --keep {path}`, and give --journal {path.with_suffix('')}",
            )
        if path.exists() and not path.is_file():
            raise OpMarkError(
                "is no file that a journal can be kept in", where=str(path), hint="name another --journal"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise OpMarkError(f"cannot write: {error.strerror}", where=str(path)) from error
        try:
            self._lock()
            self.found = self._prepare(header)
        except BaseException:
            os.close(self._descriptor)
            raise

    def start_session(self, environment: Environment, targets: Sequence[Target]) -> None:
        """Record the start of a run on `targets`.

        Raises `ContentError` with the first differing fact if the journal was started on another machine.
        """
        differences = self.found.environment.differences(environment) if self.found.sessions else {}
        if differences:
            name, (before, now) = next(iter(differences.items()))
            raise ContentError(
                f"was started on another machine: {name} is {now!r} here and was {before!r}",
                where=str(self._path),
                hint="give this run another --journal",
            )
        self.append([Session(environment=environment, targets=tuple(targets), values=VALUES)])

    def append(self, records: Iterable[Record]) -> None:
        """Write `records` and wait until they are on disk. Raises `OpMarkError` if the disk is full."""
        size = os.fstat(self._descriptor).st_size
        remaining = memoryview(_lines(records))
        try:
            while remaining:
                remaining = remaining[os.write(self._descriptor, remaining) :]
            os.fsync(self._descriptor)
        except OSError as error:
            # A partial record would damage the records of a later run.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise OpMarkError(
                f"cannot write: {error.strerror}",
                where=str(self._path),
                hint="free some space and run the same command again: it continues from here",
            ) from error

    def close(self) -> None:
        """Release the journal for other runs."""
        os.close(self._descriptor)

    def __enter__(self) -> "JournalWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MeasurementError(
                "another run is writing this journal",
                where=str(self._path),
                hint="wait for it, or give this run another --journal",
            ) from None

    def _prepare(self, header: Header) -> Journal:
        _, whole_bytes = read_records(self._path)
        if whole_bytes == 0:
            self._refuse_foreign(header)
            os.ftruncate(self._descriptor, 0)
            self.append([header])
        journal = read_journal(self._path)
        if journal.header != header:
            raise ContentError(
                f"belongs to suite {journal.header.suite!r} ({journal.header.quality}) with other content",
                where=str(self._path),
                hint="give this run another --journal",
            )
        os.ftruncate(self._descriptor, journal.size_bytes)
        return journal

    def _refuse_foreign(self, header: Header) -> None:
        """Raise `ContentError` unless the file, which has no whole line, begins as this journal does."""
        begun = self._path.read_bytes()
        if not _lines([header]).startswith(begun):
            raise ContentError(
                "not a journal, and it is not replaced by one",
                where=str(self._path),
                hint="give this run another --journal, or remove the file yourself",
            )


def _lines(records: Iterable[Record]) -> bytes:
    return "".join(map(line_of, records)).encode()
