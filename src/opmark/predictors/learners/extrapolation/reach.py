"""The sizes up to which learners follow a kernel: the largest measured ones, of all kernels or of the same codes.

Beyond its rows, a Gaussian process goes back to its mean and follows its linear part: what it learned of an operator is
lost for the first kernel that is larger. Where every column is held at its largest measured value, a larger kernel is
told to be as efficient as the largest measured one, and the roofline alone makes it longer (decision 0052).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.residual import smooth_residual
from opmark.predictors.learners.roofline import fit_roofline

# With fewer rows, the largest of them say too little.
_ENOUGH_ROWS = 40
# The largest tenth of the rows, in FLOPs times bytes, decides.
_LARGEST = 0.1
# Codes with fewer rows have the limits of all rows.
_ENOUGH_OF_CODES = 5
# Limits are believed in: without them, and with those of all kernels, the error counts so much more.
_DOUBT, _DOUBT_OF_ALL = 1.2, 1.05
# A process of so few rows decides as well as one of all.
_MOST_ROWS = 800
_SEARCH_ROWS = 240
_FILE = "reach.json"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """The largest values of the columns that are no codes, by the codes of a kernel; those without codes are of all."""

    most: Mapping[tuple[float, ...], tuple[float, ...]]

    def within(self, inputs: Inputs) -> Inputs:
        """Hold every column of each kernel at its largest value. Raises `ValueError` where columns differ in number."""
        numeric = _numeric(inputs)
        if any(len(values) != len(numeric) for values in self.most.values()):
            raise ValueError(f"{inputs.kind}: {_FILE} holds limits of other columns than kernels have here")
        codes = inputs.matrix[:, list(inputs.categorical)].tolist()
        most = np.array([self.most.get(tuple(found), self.most[()]) for found in codes])
        matrix = inputs.matrix.copy()
        matrix[:, numeric] = np.minimum(matrix[:, numeric], most.reshape(len(codes), len(numeric)))
        return replace(inputs, matrix=matrix)

    def files(self) -> dict[str, str]:
        """Write the limits."""
        limits = [[list(codes), list(values)] for codes, values in sorted(self.most.items())]
        return {_FILE: to_text({"most": limits})}


def fit_reach(inputs: Inputs, labels: Latencies) -> Reach | None:
    """Find the limits with which a process of the smaller kernels tells the largest best; None if it needs none."""
    size = inputs.log_work
    if len(inputs) < _ENOUGH_ROWS or not np.ptp(size):
        return None
    largest = size >= np.quantile(size, 1 - _LARGEST)
    smaller, judged, told = inputs.take(~largest), inputs.take(largest), labels.take(~largest)
    if len(smaller) < _ENOUGH_ROWS // 2:
        return None
    roofline = fit_roofline(smaller.flops, smaller.moved_bytes, told.hot_ns)
    learned = smooth_residual(
        smaller,
        np.log(told.hot_ns / roofline.latency_ns(smaller.flops, smaller.moved_bytes)),
        most_rows=_MOST_ROWS,
        search_rows=_SEARCH_ROWS,
        weight=told.weight,
    )
    target = np.log(labels.hot_ns[largest] / roofline.latency_ns(judged.flops, judged.moved_bytes))

    def error(tried: Reach | None) -> float:
        held = judged if tried is None else tried.within(judged)
        return float(np.abs(learned.predict(held) - target).mean())

    errors = {
        None: _DOUBT * error(None),
        reach_of_all: _DOUBT_OF_ALL * error(reach_of_all(smaller)),
        _of_codes: error(_of_codes(smaller)),
    }
    best = min(errors, key=lambda limits: errors[limits])
    return None if best is None else best(inputs)


def reach_from(files: Mapping[str, str]) -> Reach | None:
    """Read what `Reach.files` wrote, None without it. Raises `KeyError` or `ValueError` on foreign text."""
    if _FILE not in files:
        return None
    limits = from_text(files[_FILE])["most"]
    most = {tuple(map(float, codes)): tuple(map(float, values)) for codes, values in limits}
    if () not in most:
        raise ValueError(f"{_FILE} lacks the limits of all kernels")
    if not all(np.isfinite(values).all() for values in most.values()):
        raise ValueError(f"{_FILE} holds a limit that is not a finite number")
    return Reach(most=most)


def reach_of_all(inputs: Inputs) -> Reach:
    """Take the largest values of all kernels as limits."""
    return Reach(most={(): _most(inputs.matrix[:, _numeric(inputs)])})


def _of_codes(inputs: Inputs) -> Reach:
    rows: defaultdict[tuple[float, ...], list[int]] = defaultdict(list)
    for row, codes in enumerate(inputs.matrix[:, list(inputs.categorical)].tolist()):
        rows[tuple(codes)].append(row)
    columns = inputs.matrix[:, _numeric(inputs)]
    own = {codes: _most(columns[found]) for codes, found in rows.items() if len(found) >= _ENOUGH_OF_CODES}
    return Reach(most={**own, (): _most(columns)})


def _most(columns: Floats) -> tuple[float, ...]:
    values: Any = columns.max(axis=0).tolist()
    return tuple(values)


def _numeric(inputs: Inputs) -> list[int]:
    return [column for column in range(inputs.matrix.shape[1]) if column not in inputs.categorical]
