"""Intervals by drawing whole families, and families with relatives in training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.predictors.inputs.arrays import Integers
from opmark.predictors.judging.families import family_intervals, relatives


def test_families_are_drawn_whole() -> None:
    seen: list[Integers] = []
    families = ["a"] * 3 + ["b"] * 2 + ["c"]
    family_intervals(families, lambda rows: seen.append(rows) or {"n": float(len(rows))})
    sizes = {"a": 3, "b": 2, "c": 1}
    for rows in seen:
        counts = {name: sum(families[row] == name for row in rows) for name in sizes}
        assert all(counts[name] % size == 0 for name, size in sizes.items())
        assert sum(counts[name] // size for name, size in sizes.items()) == 3


def test_many_rows_of_few_families_are_little_evidence() -> None:
    right = np.repeat([1.0, 1.0, 0.0], 100)
    alone = [str(number) for number in range(300)]
    few = [str(number // 100) for number in range(300)]
    narrow, wide = (family_intervals(names, lambda rows: {"share": right[rows].mean()}) for names in (alone, few))
    assert narrow["share"][0] > 0.58
    assert wide["share"] == (pytest.approx(0, abs=0.34), 1.0)


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=30))
def test_an_interval_holds_the_values_it_was_drawn_from(families: list[str]) -> None:
    values = np.arange(len(families), dtype=np.float64)
    found = family_intervals(families, lambda rows: {"mean": float(values[rows].mean())})
    if len(set(families)) < 2:
        assert found == {}
    else:
        low, high = found["mean"]
        assert 0 <= low <= high <= len(families) - 1
        assert found == family_intervals(families, lambda rows: {"mean": float(values[rows].mean())})


def test_designs_with_two_names_and_small_versions_are_relatives() -> None:
    found = relatives(["resnet", "encoder", "t5", "resnet"], ["resnet-small", "decoder", "bert"])
    assert found == {"resnet": ("resnet-small",), "encoder": ("decoder",)}
