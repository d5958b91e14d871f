"""Files are whole or absent, whatever goes wrong while they are written."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from opmark.core.errors import ContentError, OpMarkError
from opmark.core.files import atomic_path, json_text, sha256, write_bytes, write_json, write_text
from opmark.core.reading import read_json, read_text


def no_space(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_written_text_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "note.txt"
    write_text(path, "µs\n")
    assert read_text(path) == "µs\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_packed_text_is_read_back_and_the_same_each_time(tmp_path: Path) -> None:
    one, two = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    for path in (one, two):
        write_json(path, {"µ": ["s"] * 1000})
        assert read_json(path) == {"µ": ["s"] * 1000}
    assert one.read_bytes() == two.read_bytes()
    assert len(one.read_bytes()) < 200
    one.write_bytes(two.read_bytes()[:-9])
    with pytest.raises(ContentError, match="not a complete gzip file"):
        read_json(one)


@pytest.mark.parametrize("failing", ["fsync", "mkstemp"])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / "standings.json"
    write_text(path, "old")
    monkeypatch.setattr("os.fsync" if failing == "fsync" else "tempfile.mkstemp", lambda *_, **__: no_space())
    with pytest.raises(OpMarkError) as caught:
        write_text(path, "new")
    assert "No space left" in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.hint
    monkeypatch.undo()
    assert read_text(path) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_in_the_middle_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.bin"
    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(OpMarkError, match="No space left"):
        write_bytes(path, b"0" * 1000)
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_block_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "half.txt"

    def fail() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OpMarkError, match="cannot write"):
        write_text(tmp_path / "taken" / "note.txt", "x")


def test_json_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, {"b": (1, 2), "a": "µ"})
    assert read_json(path) == {"b": [1, 2], "a": "µ"}
    assert path.read_text().index('"b"') < path.read_text().index('"a"')
    assert json_text([]).endswith("\n")


def test_json_errors_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{\n"a": 1,\n]\n')
    with pytest.raises(ContentError) as caught:
        read_json(path)
    assert caught.value.where == f"{path}:3"
    assert caught.value.exit_code == 3


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="no such file"):
        read_text(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ContentError, match="not a text file"):
        read_text(tmp_path / "binary")
    with pytest.raises(ContentError, match="cannot be read"):
        read_text(tmp_path)


def test_sha256_is_the_published_one(tmp_path: Path) -> None:
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    assert sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_dev_null_swallows_what_is_written_and_stays_a_device() -> None:
    write_text(Path("/dev/null"), "gone")
    write_text(Path("/dev/../dev/null"), "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_receives_the_content(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, "through")
    reader.join()
    assert received == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_keeps_the_order_even_in_a_file(tmp_path: Path, name: str) -> None:
    code = (
        "from pathlib import Path; from opmark.core.files import write_text; print('one');"
        f"write_text(Path({name!r}), 'two\\n'); print('three')"
    )
    target = tmp_path / "out.txt"
    with target.open("wb") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert target.read_text() == "one\ntwo\nthree\n"


def test_a_folder_is_refused_and_a_link_to_one(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    for path in (folder, link):
        with pytest.raises(OpMarkError, match="is a folder, not a file"):
            write_text(path, "x")
    assert link.is_symlink()


def test_a_link_in_a_folder_of_content_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "private", tmp_path / "standings.json"
    target.write_text("mine")
    link.symlink_to(target)
    write_text(link, "new")
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("mine", "new", False)


def test_the_checksum_of_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path, "a folder")):
        with pytest.raises(ContentError, match=f"it is {kind}, not a plain file"):
            sha256(path)


def test_a_file_keeps_its_rights_and_one_without_the_right_to_write_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o600)
    write_text(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    path.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
    with pytest.raises(OpMarkError, match="private: cannot write: Permission denied"):
        write_text(path, "newer")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_a_terabyte_is_not_read_for_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(ContentError, match="sparse: larger than 1 MiB"):
        sha256(path, at_most=2**20)
