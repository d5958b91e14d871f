"""Tensors share memory one after the other, and never at the same time."""

import numpy as np
import pytest

from opmark.bench.backends._onnx.buffers import BufferPool, KeptMemory, aligned_bytes
from opmark.bench.backends._onnx.model import stack
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec


def test_what_is_released_is_used_again() -> None:
    pool = BufferPool()
    first = pool.take("a", (4, 8), np.float32)
    second = pool.take("b", (16,), np.float32)
    assert not np.shares_memory(first, second)
    pool.release("a")
    third = pool.take("c", (2, 8), np.int64)
    assert np.shares_memory(first, third)
    assert third.shape == (2, 8)
    assert third.dtype == np.int64


def test_the_smallest_block_that_fits_is_taken() -> None:
    pool = BufferPool()
    blocks = {name: pool.take(name, (size,), np.uint8) for name, size in (("large", 900), ("small", 100))}
    for name in blocks:
        pool.release(name)
    assert np.shares_memory(pool.take("x", (80,), np.uint8), blocks["small"])
    assert np.shares_memory(pool.take("y", (80,), np.uint8), blocks["large"])
    assert not any(np.shares_memory(pool.take("z", (80,), np.uint8), block) for block in blocks.values())


def test_releasing_twice_or_a_stranger_does_nothing() -> None:
    pool = BufferPool()
    pool.release("stranger")
    first = pool.take("a", (8,), np.uint8)
    pool.release("a")
    pool.release("a")
    one, two = pool.take("b", (8,), np.uint8), pool.take("c", (8,), np.uint8)
    assert np.shares_memory(one, first)
    assert not np.shares_memory(one, two)


def test_memory_begins_with_a_cache_line() -> None:
    for size in (0, 1, 63, 1_000_000):
        found = aligned_bytes(size)
        assert found.nbytes == size
        assert found.ctypes.data % 64 == 0 or not size
        assert not found.any()


def test_kept_memory_is_free_when_no_view_is_left() -> None:
    memory = KeptMemory()
    first = memory.take((3, 5), np.float32)
    second = memory.take((7,), np.int64)
    address = first.ctypes.data
    assert (first.shape, first.dtype, second.shape, second.dtype) == ((3, 5), np.float32, (7,), np.int64)
    assert not np.shares_memory(first, second)
    view = first[1:].reshape(-1)
    del first, second
    third = memory.take((100,), np.uint8)
    assert not np.shares_memory(view, third)
    del view, third
    assert memory.take((1000,), np.uint8).ctypes.data == address


def test_kept_memory_lies_as_in_the_runtime() -> None:
    memory = KeptMemory()
    arrays = [memory.take(shape, np.float32) for shape in ((), (1,), (63,), (0, 3), (17, 1000), (20 << 20,))]
    assert {array.ctypes.data % 256 for array in arrays if array.size} == {0}
    for one, array in enumerate(arrays):
        array[...] = one
    assert [array.ravel()[-1] for array in arrays if array.size] == [0, 1, 2, 4, 5]
    assert arrays[3].shape == (0, 3)


def test_kept_memory_is_limited() -> None:
    memory = KeptMemory(kept_bytes=1)
    large = memory.take((100 << 20,), np.uint8)
    small = memory.take((10,), np.uint8)
    small[:] = 1
    del large
    larger = memory.take((120 << 20,), np.uint8)
    assert memory.kept_bytes == (64 + 120) << 20
    assert not np.shares_memory(small, larger)
    assert small.all()
    again = memory.copied(small)
    assert again.all()
    assert not np.shares_memory(again, small)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_vectors_of_bound_tensors_cross_no_lines(dtype: str) -> None:
    spec, weights = TensorSpec((3, 1001), dtype), TensorSpec((70, 1001), dtype)
    inputs = (Operand(spec=spec), Operand(spec=weights, constant=True))
    stacked = stack(OnnxNode(op_type="MatMul", inputs=inputs, outputs=(spec,)), copies=3, chain=False, rotated=True)
    arrays = [*stacked.feeds.values(), *stacked.constants.values()]
    assert len(arrays) >= 3
    assert {array.ctypes.data % 64 for array in arrays} == {0}
    assert not any(np.shares_memory(a, b) for at, a in enumerate(arrays) for b in arrays[:at])
