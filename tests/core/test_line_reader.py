import os
import threading

import pytest

from opmark.core.line_reader import LineReader


def test_lines_come_whole_and_in_order_until_the_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as sink:
        reader = LineReader(stream)
        sink.write(b"one\ntwo\nthr")
        assert reader.read(1.0) == b"one"
        assert reader.read(1.0) == b"two"
        assert reader.read(0.0) is None
        later = threading.Timer(0.05, sink.write, [b"ee\nrest"])
        later.start()
        assert reader.read(10.0) == b"three"
        later.join()
        sink.close()
        assert reader.read(1.0) == b""


@pytest.mark.parametrize("size", [1, 1 << 17])
def test_a_line_of_any_size(size: int) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb") as sink:

        def write() -> None:
            sink.write(b"x" * size + b"\n")
            sink.flush()

        writer = threading.Thread(target=write)
        writer.start()
        assert LineReader(stream).read(10.0) == b"x" * size
        writer.join()
