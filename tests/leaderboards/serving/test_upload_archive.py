"""Uploaded archives, honest and hostile: what is taken, what is refused, and that refusing writes nothing."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
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


# Made by their tests: some take a second.
HOSTILE: dict[str, Callable[[], bytes]] = {
    "above": lambda: tar(("../x", b"1")),
    "inside and above": lambda: tar(("a/../../x", b"1")),
    "absolute": lambda: tar(("/tmp/x", b"1")),
    "absolute in a zip": lambda: zipped(("/tmp/x", b"1")),
    "above in a zip": lambda: zipped(("a/../../x", b"1")),
    "windows": lambda: zipped(("a\\..\\x", b"1")),
    "control": lambda: tar(("a\x1b[2J", b"1")),
    "surrogate": lambda: tar(("a\udcff", b"1")),
    "long": lambda: tar(("a" * 300, b"1")),
    "deep": lambda: tar(("/".join("a" * 40), b"1")),
    "empty part": lambda: zipped(("a//b", b"1")),
    "symlink": lambda: tar((special("placer.py", tarfile.SYMTYPE, "/etc/passwd"), b"")),
    "hard link": lambda: tar((special("placer.py", tarfile.LNKTYPE, "/etc/passwd"), b"")),
    "device": lambda: tar((special("placer.py", tarfile.CHRTYPE), b"")),
    "pipe": lambda: tar((special("placer.py", tarfile.FIFOTYPE), b"")),
    "link in a zip": lambda: zipped((link_in_zip(), b"/etc/passwd")),
    "twice": lambda: tar(("a", b"1"), ("a", b"2")),
    "file as folder": lambda: tar(("a", b"1"), ("a/b", b"2")),
    "folder as file": lambda: tar(("a/b", b"1"), ("a", b"2")),
    "many files": lambda: tar(*((f"f{number}", b"") for number in range(FILES_AT_MOST + 1))),
    "many entries": lambda: zipped(*((f"f{number}/", b"") for number in range(4 * FILES_AT_MOST + 1))),
    "tar bomb": lambda: tar(("zeros", bytes(SIZE_BYTES_AT_MOST + 1))),
    "zip bomb": lambda: zipped(("zeros", bytes(SIZE_BYTES_AT_MOST + 1))),
    "bomb of two": lambda: zipped(("a", bytes(SIZE_BYTES_AT_MOST - 10)), ("b", bytes(11))),
    "gzip bomb": lambda: gzip.compress(bytes(8 * SIZE_BYTES_AT_MOST), 9),
    "lzma": lambda: zipped(("a", b"1"), method=zipfile.ZIP_LZMA),
    "empty": tar,
    "empty zip": zipped,
    "folders only": lambda: tar((special("a", tarfile.DIRTYPE), b"")),
    "nothing": lambda: b"",
    "text": lambda: b"name: x",
    "cut": lambda: tar(("a", b"1" * 9999))[:-20],
    "cut zip": lambda: zipped(("a", b"1" * 9999))[:-20],
    "gzip of text": lambda: gzip.compress(b"no tar"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError) as caught:
        unpack_upload(HOSTILE[name](), tmp_path / "submission")
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
