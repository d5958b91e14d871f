"""The decisions of active sampling, without a measurement."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Suite
from opmark.core.measurements.records import KernelTrial
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.studies.active_sampling.allocation import (
    CellState,
    by_cell,
    choose,
    first_look,
    importance,
    next_counts,
    per_cell,
    set_aside,
    target_errors,
)

np = pytest.importorskip("numpy")

SUITE = Suite(
    name="s", targets=("null-t1", "null-a-t1"), kinds={"gemm": KindSpec(count=80), "conv": KindSpec(count=90)}
)


@cache
def cells() -> dict[tuple[str, str], list[KernelTrial]]:
    """The trials of the suite by target and kind."""
    return by_cell(plan(SUITE).kernels)


def cell(kind: str, target: str = "null-t1") -> list[KernelTrial]:
    return cells()[target, kind]


def state(kind: str, *, rows: int = 100, width: float = 0.1, left: int = 1000, error: float = 0.05) -> CellState:
    return CellState(cell=("t", kind), rows=rows, error=error, half_width=width, left=left)


@pytest.mark.parametrize("kind", ["gemm", "conv"])
def test_whole_groups_are_set_aside_whatever_the_order(kind: str) -> None:
    trials = cell(kind)
    judging = set_aside(trials)
    assert 0.1 * len(trials) <= len(judging) <= 0.36 * len(trials)
    groups = shape_groups([trial.kernel for trial in trials])
    inside = {group for trial, group in zip(trials, groups, strict=True) if trial.trial in judging}
    outside = {group for trial, group in zip(trials, groups, strict=True) if trial.trial not in judging}
    assert not inside & outside
    assert set_aside(trials[::-1]) == judging


def test_a_cell_of_one_group_has_single_kernels_set_aside() -> None:
    alike = [replace(cell("gemm")[0], trial=f"{number:016x}") for number in range(12)]
    judging = set_aside(alike)
    assert 1 <= len(judging) < len(alike)


def test_the_first_look_holds_every_cell_and_both_roles() -> None:
    judging = frozenset(key for trials in cells().values() for key in set_aside(trials))
    chosen = first_look(cells(), judging, 5)
    assert len(chosen) == len(set(chosen)) == 5 * 2 * len(cells())
    assert len(judging & set(chosen)) == 5 * len(cells())


def test_a_short_budget_makes_a_smaller_first_look() -> None:
    assert per_cell(None, 10) == per_cell(86_400, 10) > per_cell(600, 40) > 0
    assert per_cell(1, 40) == per_cell(0.1, 40) > 0


def test_importance_is_time_and_nothing_is_unimportant() -> None:
    shares = {"a": {"conv": 0.9, "gemm": 0.1}}
    found = importance([("a", "conv"), ("a", "gemm"), ("a", "lstm"), ("b", "conv")], shares)
    assert found["b", "conv"] == 1.0
    assert sum(weight for (target, _), weight in found.items() if target == "a") == pytest.approx(1)
    assert found["a", "conv"] > found["a", "gemm"] > found["a", "lstm"] > 0


def test_a_targets_error_is_weighted_by_time() -> None:
    states = [state("big", error=0.02), state("small", error=0.5)]
    assert target_errors(states, {("t", "big"): 0.9, ("t", "small"): 0.1}) == {"t": pytest.approx(0.068)}


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.floats(0.001, 2), st.integers(0, 300), st.floats(0.001, 1)),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 1000),
)
def test_a_round_is_dealt_out_whole_and_never_more_than_is_left(
    cells: list[tuple[int, float, int, float]], count: int
) -> None:
    states = [state(str(i), rows=rows, width=width, left=left) for i, (rows, width, left, _) in enumerate(cells)]
    weights = {("t", str(i)): weight for i, (*_, weight) in enumerate(cells)}
    counts = next_counts(states, weights, count)
    assert sum(counts.values()) == min(count, sum(one.left for one in states))
    assert all(0 <= counts[one.cell] <= one.left for one in states)


def test_a_round_goes_where_it_gains_most() -> None:
    even = {("t", name): 0.5 for name in "ab"}

    def dealt(first: CellState, second: CellState, weights: dict[tuple[str, str], float] = even) -> tuple[int, int]:
        counts = next_counts([first, second], weights, 100)
        return counts["t", "a"], counts["t", "b"]

    assert dealt(state("a"), state("b")) == (50, 50)
    wide, narrow = dealt(state("a", width=0.3), state("b"))
    assert wide > narrow
    heavy, light = dealt(state("a"), state("b"), {("t", "a"): 0.9, ("t", "b"): 0.1})
    assert heavy > light
    # As wide with a tenth of the rows: the next row narrows it more.
    few, many = dealt(state("a", rows=20), state("b", rows=200))
    assert few > many


def test_what_is_unlike_everything_measured_is_chosen_early() -> None:
    kernels = sorted((trial.kernel for trial in cell("gemm")), key=lambda kernel: kernel.params["k"])
    known, rest = features(kernels[:40]), features(kernels[40:])
    order = choose(rest, known, np.ones(len(rest)), len(rest))
    assert sorted(order) == list(range(len(rest)))
    assert order[0] == 0, "the next in order"
    # Every second choice goes to the far end: of the first few, more are far away than in the order given.
    near = np.abs(rest.matrix[:, rest.names.index("k")] - known.matrix[:, known.names.index("k")].max())
    assert np.mean(near[order[1:12:2]]) > np.mean(near[:12])
    assert choose(rest, known, np.ones(len(rest)), 3) == order[:3]
    assert len(choose(rest, known.take([]), np.ones(len(rest)), 1000)) == len(rest)


def test_wide_intervals_are_chosen_before_narrow_ones() -> None:
    inputs = features([trial.kernel for trial in cell("gemm")])
    widths = np.full(len(inputs), 0.01)
    widths[70:76] = 10.0
    order = choose(inputs, inputs.take([]), widths, 12)
    assert set(order[1::2]) == set(range(70, 76))
