"""Packed submissions: the same bytes for the same folder, opened safely."""

import hashlib
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from tests.leaderboards.submissions.folders import program

from opmark.core.errors import SubmissionError
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.pack import digest, pack, unpacked


def test_packing_gives_the_same_bytes_and_opens_safely(tmp_path: Path) -> None:
    first = program(tmp_path / "a", "print(1)")
    second = program(tmp_path / "b", "print(1)")
    (second / "__pycache__").mkdir()
    (second / "__pycache__" / "x.pyc").write_bytes(b"x")
    (second / ".git").mkdir()
    os.utime(second / "main.py", (1, 1))
    (second / "main.py").chmod(0o600)
    one, two = pack(load_submission(first)), pack(load_submission(second))
    assert one == two
    assert digest(one) == hashlib.sha256(one).hexdigest()
    with unpacked(one) as submission:
        assert stat.S_IMODE((submission.folder / "main.py").stat().st_mode) == 0o644
        assert submission.manifest.name == "mine"


@pytest.mark.parametrize(
    ("name", "sort"),
    [
        ("../../evil", tarfile.REGTYPE),
        ("/tmp/evil", tarfile.REGTYPE),
        ("a/../../evil", tarfile.REGTYPE),
        ("link", tarfile.SYMTYPE),
        ("link", tarfile.LNKTYPE),
        ("pipe", tarfile.FIFOTYPE),
        ("device", tarfile.CHRTYPE),
        ("n" * 300, tarfile.REGTYPE),
        (".", tarfile.REGTYPE),
    ],
)
def test_nothing_but_files_inside_is_unpacked(name: str, sort: bytes) -> None:
    hostile = io.BytesIO()
    with tarfile.open(fileobj=hostile, mode="w") as archive:
        item = tarfile.TarInfo(name)
        item.type, item.linkname = sort, "/etc/passwd"
        archive.addfile(item)
    with pytest.raises(SubmissionError), unpacked(hostile.getvalue()):
        pass
    assert not Path("/tmp/evil").exists()


def test_an_archive_cut_short_is_refused() -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as written:
        item = tarfile.TarInfo("submission.yaml")
        item.size = 5000
        written.addfile(item, io.BytesIO(b"x" * 5000))
    with pytest.raises(SubmissionError, match="cannot be opened"), unpacked(archive.getvalue()[:2000]):
        pass
