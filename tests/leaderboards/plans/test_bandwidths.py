"""Bandwidth polynomials: their times, their limits, and the nearest measured pair."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from opmark.core.errors import ContentError
from opmark.core.shipped import shipped_content
from opmark.leaderboards.plans.bandwidths import BETWEEN, WITHIN, Bandwidth, Bandwidths, load_bandwidths

SHIPPED = load_bandwidths(shipped_content().leaderboards / "layers" / "sailor" / "networks")
RATES = [SHIPPED.within(gpu, 2) for gpu in SHIPPED.within_node]


def test_a_polynomial_by_hand() -> None:
    # at 4 MB: log2 is 2, so 1 · 2 + 3 = 5 GB/s
    assert Bandwidth((1.0, 3.0), 20e9).seconds(4e6) == pytest.approx(4e6 / 5e9)
    assert Bandwidth((1.0, 3.0), 20e9).seconds(0) == 0


@given(some.integers(min_value=1, max_value=2**34), some.floats(min_value=1.0, max_value=8.0))
def test_more_bytes_never_take_less_time(size: int, factor: float) -> None:
    for rate in RATES:
        assert rate.seconds(size * factor) >= rate.seconds(size) * (1 - 1e-9) > 0


def test_the_nearest_pair() -> None:
    slow, fast = [[0.0, 0.0, 1.0], 1e9], [[0.0, 0.0, 4.0], 4e9]
    pairs = {"z": {"A": {"1": {"z": {"B": {"1": slow}}}, "4": {"z": {"B": {"4": fast}}}}}}
    links = Bandwidths(Path("folder"), pairs, {"A": {"2": slow, "8": fast}})
    assert links.between(("z", "A", 4), ("z", "B", 4)).greatest_bytes_per_s == 4e9
    assert links.between(("z", "A", 2), ("z", "B", 2)).greatest_bytes_per_s == 1e9
    assert links.between(("z", "B", 1), ("z", "A", 1)).greatest_bytes_per_s == 1e9
    assert links.within("A", 8).greatest_bytes_per_s == 4e9
    with pytest.raises(ContentError, match="no bandwidth between A in z and C in z"):
        links.between(("z", "A", 1), ("z", "C", 1))
    with pytest.raises(ContentError, match="no bandwidth within a node of C"):
        links.within("C", 1)


def test_broken_files(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match=f"{BETWEEN}: no such file"):
        load_bandwidths(tmp_path)
    (tmp_path / BETWEEN).write_text("{}")
    (tmp_path / WITHIN).write_text(json.dumps({"A": {"2": [[1, "x"], 3]}}))
    with pytest.raises(ContentError, match="coefficients"):
        load_bandwidths(tmp_path).within("A", 2)
    for text, sentence in (
        ("[]", "expected a mapping by GPU type"),
        ('{"A": []}', f"{WITHIN}: A: expected a mapping by number of GPUs"),
        ('{"A": {"two": []}}', f"{WITHIN}: A: 'two' is no number of GPUs"),
        ('{"A": {"0": []}}', "'0' is no number of GPUs"),
    ):
        (tmp_path / WITHIN).write_text(text)
        with pytest.raises(ContentError, match=sentence):
            load_bandwidths(tmp_path)
    (tmp_path / WITHIN).write_text("{}")
    (tmp_path / BETWEEN).write_text('{"z": {"A": {"1": {"z": {"A": 7}}}}}')
    with pytest.raises(ContentError, match=f"{BETWEEN}: z.A.1.z.A: expected a mapping by number of GPUs"):
        load_bandwidths(tmp_path)
    (tmp_path / BETWEEN).write_text('{"z": {"A": {"1": {"z": {"A": {}}}}}}')
    with pytest.raises(ContentError, match="no bandwidth between A in z and A in z"):
        load_bandwidths(tmp_path).between(("z", "A", 1), ("z", "A", 1))
