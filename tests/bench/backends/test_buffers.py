"""Tensors share memory one after the other, and never at the same time."""

import numpy as np

from opmark.bench.backends._onnx.buffers import BufferPool, aligned_bytes


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
