"""Choose the kernels to measure next: the decisions of active sampling, without the measuring.

A *cell* is a kind on a target. A round measures more kernels of a cell whose time-weighted interval is wide and likely
to become narrower with more rows. In a cell, half of the kernels chosen are those least like the measured ones.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.canonical import content_id
from opmark.core.measurements.records import KernelTrial
from opmark.predictors.inputs.arrays import Flags, Floats
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import shape_groups

Cell = tuple[str, str]
# About this share of a cell's kernels judge. A group with more than the second share of them never judges.
_TEST_SHARE = 0.1
_LARGEST_TEST_GROUP = 0.25
# The first round costs at most this share of the budget, at about this many kernels per second.
_FIRST_SHARE = 0.3
_KERNELS_PER_S = 3.0
_FEWEST, _MOST = 6, 20
# A cell without time in the known networks gets this part of an equal share.
_LEAST_SHARE = 0.1
# Errors fall roughly with the square root of the number of rows.
_DECAY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """The knowledge about a cell: its training rows, and their median absolute relative error on held-out shape groups.

    `half_width` belongs to the 90 % interval, in nats; `left` is the number of kernels still to be measured.
    """

    cell: Cell
    rows: int
    error: float
    half_width: float
    left: int


def by_cell(trials: Iterable[KernelTrial]) -> dict[Cell, list[KernelTrial]]:
    """Group trials by target and kind, in the order given."""
    found: dict[Cell, list[KernelTrial]] = defaultdict(list)
    for trial in trials:
        found[trial.target, trial.kernel.kind].append(trial)
    return dict(found)


def set_aside(trials: Sequence[KernelTrial]) -> frozenset[str]:
    """Keys of the trials of one cell that judge and are never trained on: about a tenth, in whole shape groups.

    The choice depends only on the groups' names, so that it is fixed before anything is measured. In a cell of one or
    two large groups, single kernels are set aside instead.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for trial, group in zip(trials, shape_groups([trial.kernel for trial in trials]), strict=True):
        groups[group].append(trial.trial)
    wanted = math.ceil(_TEST_SHARE * len(trials))
    chosen: list[str] = []
    for group in sorted(groups, key=content_id):
        if len(chosen) < wanted and len(groups[group]) <= max(1, _LARGEST_TEST_GROUP * len(trials)):
            chosen += groups[group]
    if not chosen:
        chosen = sorted(trial.trial for trial in trials)[:wanted]
    return frozenset(chosen)


def per_cell(budget_s: float | None, cells: int) -> int:
    """The number of kernels per cell in the first round: this many to train on, and as many to judge by."""
    if budget_s is None:
        return _MOST
    affordable = _FIRST_SHARE * budget_s * _KERNELS_PER_S / (2 * max(cells, 1))
    return max(_FEWEST, min(_MOST, int(affordable)))


def first_look(cells: Mapping[Cell, Sequence[KernelTrial]], judging: frozenset[str], each: int) -> list[str]:
    """The trials of the first round: of every cell, `each` to train on and `each` to judge by, in the plan's order."""
    found = []
    for trials in cells.values():
        for judges in (True, False):
            mine = [trial.trial for trial in trials if (trial.trial in judging) == judges]
            found += mine[:each]
    return found


def importance(cells: Iterable[Cell], shares: Mapping[str, Mapping[str, float]]) -> dict[Cell, float]:
    """Each cell's share of its target's time; the shares of a target sum to one, and each is positive."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for target, kind in cells:
        kinds[target].append(kind)
    found: dict[Cell, float] = {}
    for target, names in kinds.items():
        least = _LEAST_SHARE / len(names)
        raw = {name: max(shares.get(target, {}).get(name, 0.0), least) for name in names}
        whole = sum(raw.values())
        found |= {(target, name): value / whole for name, value in raw.items()}
    return found


def target_errors(states: Iterable[CellState], weights: Mapping[Cell, float]) -> dict[str, float]:
    """Each target's error: the time-weighted mean of its cells' median errors."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for state in states:
        weight = weights[state.cell]
        sums[state.cell[0]][0] += weight * state.error
        sums[state.cell[0]][1] += weight
    return {target: error / weight for target, (error, weight) in sums.items()}


def next_counts(states: Sequence[CellState], weights: Mapping[Cell, float], count: int) -> dict[Cell, int]:
    """Divide the next `count` kernels among cells so that one more kernel would gain the same in each cell.

    With weight w, half-width h at n rows and h ∝ n^-a, the gain of one row at N rows is w·h·n^a·a/N^(a+1); equal gains
    mean N ∝ (w·h·n^a)^(1/(a+1)). A cell with more rows than that gets none; no cell gets more than it has left.
    """
    count = min(count, sum(state.left for state in states))
    ideal = {
        state.cell: (weights[state.cell] * state.half_width * max(state.rows, 1) ** _DECAY) ** (1 / (1 + _DECAY))
        for state in states
    }

    def wanted(level: float) -> dict[Cell, float]:
        return {
            state.cell: min(float(state.left), max(0.0, level * ideal[state.cell] - state.rows)) for state in states
        }

    low, high = 0.0, 1.0
    while sum(wanted(high).values()) < count and high < 1e15:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(wanted(middle).values()) < count else (low, middle)
    exact = wanted(high)
    counts = {cell: int(value) for cell, value in exact.items()}
    left = {state.cell: state.left for state in states}
    for cell in sorted(exact, key=lambda cell: (counts[cell] - exact[cell], cell)):
        if sum(counts.values()) < count and counts[cell] < left[cell]:
            counts[cell] += 1
    return counts


def choose(candidates: Inputs, known: Inputs, widths: Floats, count: int) -> list[int]:
    """Choose the indices of `count` candidates: alternately the next in order and the least known.

    The least known has the greatest product of half-width (`widths`, one per candidate) and distance to the nearest
    measured or chosen kernel. The candidates in order keep the sample representative.
    """
    count = min(count, len(candidates))
    place, mine = _normalised(candidates, known)
    distance = np.full(len(candidates), 1.0)
    if len(known):
        from scipy.spatial import cKDTree

        distance = cKDTree(mine).query(place)[0]
    free: Flags = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < count:
        index = (
            int(np.argmax(free)) if len(chosen) % 2 == 0 else int(np.argmax(np.where(free, widths * distance, -1.0)))
        )
        free[index] = False
        chosen.append(index)
        distance = np.minimum(distance, np.linalg.norm(place - place[index], axis=1))
    return chosen


def _normalised(candidates: Inputs, known: Inputs) -> tuple[Floats, Floats]:
    """Both as points: sizes divided by their standard deviation, and a 0/1 column per category."""
    matrix = np.vstack([candidates.matrix, known.matrix]) if len(known) else candidates.matrix
    columns = []
    for index in range(matrix.shape[1]):
        values = matrix[:, index]
        if index in candidates.categorical:
            columns += [(values == code).astype(np.float64) for code in np.unique(values)]
        elif np.ptp(values) > 0:
            columns.append(values / np.std(values))
    points: Floats = np.column_stack(columns) if columns else np.zeros((len(matrix), 1))
    return points[: len(candidates)], points[len(candidates) :]
