"""Uploaded archives, honest and hostile: what is taken, what is refused, and that refusing writes nothing."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmark.core.errors import SubmissionError
from opmark.leaderboards.serving.upload_archive import unpack_upload
from opmark.leaderboards.submissions.manifest import FILES_AT_MOST, SIZE_BYTES_AT_MOST


def tar(*items: tuple[str | tarfile.TarInfo, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for item, content in items:
            member = tarfile.TarInfo(item) if isinstance(item, str) else item
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def zipped(*items: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive:
        for item, content in items:
            archive.writestr(item, content)
    return written.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    item = tarfile.TarInfo(name)
    item.type, item.linkname = kind, target
    return item


def link_in_zip() -> zipfile.ZipInfo:
    item = zipfile.ZipInfo("placer.py")
    item.external_attr = 0o120777 << 16
    return item


def executable_in_zip() -> zipfile.ZipInfo:
    item = zipfile.ZipInfo("a/run.sh")
    item.external_attr = 0o100755 << 16
    return item


def taken(content: bytes, tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / "submission"
    unpack_upload(content, folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("pack", [tar, zipped])
def test_a_folder_is_taken_with_or_without_its_own_name(pack: object, tmp_path: Path) -> None:
    files = (("submission.yaml", b"name: x"), ("lib/a.py", b"1"))
    wanted = dict(files)
    assert taken(pack(*files), tmp_path) == wanted  # type: ignore[operator]
    (tmp_path / "again").mkdir()
    wrapped = pack(*((f"./mine/{name}", content) for name, content in files), ("mine/.git/x", b"2"))  # type: ignore[operator]
    assert taken(wrapped, tmp_path / "again") == wanted


def test_only_the_right_to_execute_is_kept(tmp_path: Path) -> None:
    unpack_upload(zipped((executable_in_zip(), b"#!"), ("a/x", b"1")), tmp_path / "z")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "z").rglob("*") if path.is_file()}
    assert modes["run.sh"] & 0o100
    assert not modes["x"] & 0o111
    setuid = tarfile.TarInfo("run.sh")
    setuid.mode = 0o6777
    unpack_upload(tar((setuid, b"#!")), tmp_path / "t")
    assert (tmp_path / "t" / "run.sh").stat().st_mode & 0o7022 == 0


HOSTILE = {
    "above": tar(("../x", b"1")),
    "inside and above": tar(("a/../../x", b"1")),
    "absolute": tar(("/tmp/x", b"1")),
    "absolute in a zip": zipped(("/tmp/x", b"1")),
    "above in a zip": zipped(("a/../../x", b"1")),
    "windows": zipped(("a\\..\\x", b"1")),
    "control": tar(("a\x1b[2J", b"1")),
    "surrogate": tar(("a\udcff", b"1")),
    "long": tar(("a" * 300, b"1")),
    "deep": tar(("/".join("a" * 40), b"1")),
    "empty part": zipped(("a//b", b"1")),
    "symlink": tar((special("placer.py", tarfile.SYMTYPE, "/etc/passwd"), b"")),
    "hard link": tar((special("placer.py", tarfile.LNKTYPE, "/etc/passwd"), b"")),
    "device": tar((special("placer.py", tarfile.CHRTYPE), b"")),
    "pipe": tar((special("placer.py", tarfile.FIFOTYPE), b"")),
    "link in a zip": zipped((link_in_zip(), b"/etc/passwd")),
    "twice": tar(("a", b"1"), ("a", b"2")),
    "file as folder": tar(("a", b"1"), ("a/b", b"2")),
    "folder as file": tar(("a/b", b"1"), ("a", b"2")),
    "many files": tar(*((f"f{number}", b"") for number in range(FILES_AT_MOST + 1))),
    "many entries": zipped(*((f"f{number}/", b"") for number in range(4 * FILES_AT_MOST + 1))),
    "tar bomb": tar(("zeros", bytes(SIZE_BYTES_AT_MOST + 1))),
    "zip bomb": zipped(("zeros", bytes(SIZE_BYTES_AT_MOST + 1))),
    "bomb of two": zipped(("a", bytes(SIZE_BYTES_AT_MOST - 10)), ("b", bytes(11))),
    "gzip bomb": gzip.compress(bytes(8 * SIZE_BYTES_AT_MOST), 9),
    "lzma": zipped(("a", b"1"), method=zipfile.ZIP_LZMA),
    "empty": tar(),
    "empty zip": zipped(),
    "folders only": tar((special("a", tarfile.DIRTYPE), b"")),
    "nothing": b"",
    "text": b"name: x",
    "cut": tar(("a", b"1" * 9999))[:-20],
    "cut zip": zipped(("a", b"1" * 9999))[:-20],
    "gzip of text": gzip.compress(b"no tar"),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_is_refused_and_writes_nothing(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError) as caught:
        unpack_upload(content, tmp_path / "submission")
    assert list(tmp_path.iterdir()) == []
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_a_zip_file_that_lies_about_its_size_is_measured(tmp_path: Path) -> None:
    content = bytearray(zipped(("zeros", bytes(SIZE_BYTES_AT_MOST + 1))))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = content.index(mark) + offset
        content[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(SubmissionError):
        unpack_upload(bytes(content), tmp_path / "submission")
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped(("a", b"1" * 50)))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    with pytest.raises(SubmissionError, match="has a password"):
        unpack_upload(bytes(content), tmp_path / "submission")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_changed_archive_is_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from([tar(("a/b", b"text" * 40)), zipped(("a/b", b"text" * 40))])))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    place = tmp_path_factory.mktemp("changed")
    try:
        unpack_upload(bytes(content), place / "submission")
    except SubmissionError:
        assert list(place.iterdir()) == []
    else:
        assert [path.name for path in place.iterdir()] == ["submission"]
