"""Shared memory has no name that could be left behind, and says at once if there is too little of it."""

from pathlib import Path

import pytest

from opmark.bench.execution.shared_memory import SharedMemory, mapped
from opmark.core.errors import MeasurementError


def test_bytes_are_shared_without_a_file(tmp_path: Path) -> None:
    memory = SharedMemory(2, folder=tmp_path)
    memory.reserve(5000)
    one, other = (mapped(memory.descriptor, 5000) for _ in range(2))
    one[4999] = 7
    assert other[4999] == 7
    assert not list(tmp_path.iterdir())
    assert set(memory.pipes) == {(0, 1), (1, 0)}
    memory.close()


def test_more_than_there_is_is_refused_in_one_sentence(tmp_path: Path) -> None:
    memory = SharedMemory(1, folder=tmp_path)
    with pytest.raises(MeasurementError, match="do not fit into shared memory: they need"):
        memory.reserve(1 << 60)
    memory.reserve(100)
    memory.close()
    assert not list(tmp_path.iterdir())
