"""Fingerprints tell tensors apart, and do not notice a view or another order of additions."""

import numpy as np
import pytest

from opmark.bench.worker.divided import fingerprint


def test_views_of_one_tensor_are_alike() -> None:
    array = np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32)
    assert fingerprint(array).matches(fingerprint(array.reshape(24, 5)))
    assert fingerprint(array).matches(fingerprint(array * np.float32(1 + 1e-6)))


@pytest.mark.parametrize("other", ["permuted", "scaled", "cut", "type", "one"])
def test_other_tensors_are_not(other: str) -> None:
    array = np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32)
    single = array.copy()
    single[0, 0, 0] += 1
    others = {
        "permuted": array.transpose(1, 0, 2),
        "scaled": array * 1.01,
        "cut": array[:3],
        "type": array.astype(np.float64),
        "one": single,
    }
    assert not fingerprint(others[other]).matches(fingerprint(array))


def test_an_empty_tensor_has_a_fingerprint() -> None:
    assert fingerprint(np.zeros((0, 3))).matches(fingerprint(np.zeros((3, 0))))
