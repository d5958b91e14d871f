"""Pack a submission into one file: the same folder gives the same bytes on every machine."""

import contextlib
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.leaderboards.submissions.manifest import Submission, files, load_submission

ARCHIVE = "submission.tar"


def pack(submission: Submission) -> bytes:
    """An uncompressed tar of the files in order of name, without owners and times; "executable" is the only right."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files(submission.folder):
            real = submission.folder / path
            try:
                content = real.read_bytes()
            except OSError as error:
                raise SubmissionError(f"cannot be read: {error.strerror}", where=str(real)) from error
            item = tarfile.TarInfo(path.as_posix())
            item.size = len(content)
            item.mode = 0o755 if real.stat().st_mode & 0o100 else 0o644
            archive.addfile(item, io.BytesIO(content))
    return written.getvalue()


def digest(archive: bytes) -> str:
    """The SHA-256 of a packed submission, in hex."""
    return hashlib.sha256(archive).hexdigest()


@contextlib.contextmanager
def unpacked(archive: bytes) -> Iterator[Submission]:
    """Unpack a submission into a temporary folder that every account can read.

    Raises `SubmissionError` for an archive that would write outside of it.
    """
    with tempfile.TemporaryDirectory(prefix="opmark-submission-") as name:
        root = Path(name)
        root.chmod(0o755)
        folder = root / "submission"
        folder.mkdir()
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as stored:
                stored.extractall(folder, filter="data")
        except tarfile.TarError as error:
            raise SubmissionError(f"the packed submission cannot be opened: {error}") from error
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        yield load_submission(folder)
