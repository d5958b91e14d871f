"""Pack a submission into one file: the same folder gives the same bytes on every machine."""

import contextlib
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

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
                for item in stored:
                    _unpack(stored, item, folder)
        except (tarfile.TarError, OSError, ValueError) as error:
            raise SubmissionError(f"the packed submission cannot be opened: {error}") from error
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            path.chmod(0o755)
        yield load_submission(folder)


def _unpack(stored: tarfile.TarFile, item: tarfile.TarInfo, folder: Path) -> None:
    """Write one file. `TarFile.extractall` has no filter in the first versions of Python 3.11."""
    path, content = PurePosixPath(item.name), stored.extractfile(item) if item.isreg() else None
    if content is None or path.is_absolute() or ".." in path.parts:
        raise SubmissionError(f"the packed submission cannot be opened: {item.name!r} is no file inside it")
    real = folder / path
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(content.read())
    real.chmod(0o755 if item.mode & 0o100 else 0o644)
