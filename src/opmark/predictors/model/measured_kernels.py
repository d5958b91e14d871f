"""The measured kernels that a predictor was trained on: exact answers, and distances of other kernels to them.

A measurement is better than any prediction of the same kernel. How far a predicted kernel lies from the nearest
measured one tells a reader what the prediction rests on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import Floats, Integers, check_shapes, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Table

# Among the texts of a kind's learner, which do not read it.
MEASURED_FILE = "measured.json"
# The usual standard error of a label, for releases that do not state it.
_USUAL_ERROR = 0.015
_UNKNOWN = float("nan")
# What was measured of a kernel's operation: kernels like it, only kernels far from it, only other types, or nothing.
MEASURED, FAR, OTHER_TYPE, UNSEEN = range(4)
# Some size of a far kernel differs from those of every measured one by more than this factor, less one. One kernel in
# fifty of the zoo is so far away; norms of rows that lie together, where rows that lie apart were measured, are at 49.
FAR_AT = 31.0
# A kernel of fewer bytes takes about as long as its call, whatever its sizes.
FAR_FROM_BYTES = 2**16
# Held-out errors grow with the distance from measured kernels of the same form, beyond the labels' noise (decision
# 0030): with these factors, nine in ten lie inside at these distances, and where no kernel of the form was measured.
_FORM_DISTANCES, _FORM_FACTORS = (2.0, 3.0, 6.0, 16.0), (1.0, 1.2, 1.75, 2.3)
_OTHER_FORM_FACTOR = 2.4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredKernels:
    """The rows of one kind: labels (rotated NaN where it was not measured), standard errors, and own features.

    `row_of` maps kernel keys to rows. `raw` holds the kind's own features by name, and `codes` names those that are
    codes; `dtype` is the code of the element type.
    """

    row_of: Mapping[str, int]
    hot_ns: Floats
    rotated_ns: Floats
    error: Floats
    raw: Mapping[str, Floats]
    codes: tuple[str, ...]
    dtype: Floats

    def rows(self, kernels: Sequence[Kernel]) -> Integers:
        """Look up the row of each kernel, -1 for one that was not measured."""
        return np.array([self.row_of.get(kernel.key, -1) for kernel in kernels], dtype=np.int64)

    def distances(self, inputs: Inputs) -> tuple[Floats, Floats]:
        """Compute by which share the size that differs most differs from the nearest measured kernel.

        0.25 means that every size of some measured kernel, flags included, lies within a factor of 1.25. NaN where no
        kernel of the same operation and element type was measured. The second distance is that to the nearest kernel of
        the same form, whose flags are all equal; infinite where none was measured.
        """
        names = [name for name in self.raw if name not in self.codes]
        known, asked = (
            np.column_stack([np.log1p(np.abs(of[name])) for name in names] or [np.zeros(len(self.hot_ns))])
            for of in (self.raw, inputs.raw)
        )
        flags = np.array([bool(np.isin(self.raw[name], (0.0, 1.0)).all()) for name in names] or [False])
        own = _codes(inputs.raw, self.codes, inputs.matrix[:, inputs.names.index("dtype_code")])
        theirs = _codes(self.raw, self.codes, self.dtype)
        found, of_form = np.full(len(inputs), _UNKNOWN), np.full(len(inputs), np.inf)
        for row in range(len(inputs)):
            alike = (theirs == own[row]).all(axis=1)
            if alike.any():
                gaps = np.abs(known[alike] - asked[row])
                largest = gaps.max(axis=1)
                found[row] = np.expm1(largest.min())
                of_form[row] = np.expm1(largest[~gaps[:, flags].any(axis=1)].min(initial=np.inf))
        return found, of_form

    def evidence(self, inputs: Inputs, distances: Floats) -> Integers:
        """Say what was measured of the operation of each kernel: `MEASURED`, `FAR`, `OTHER_TYPE` or `UNSEEN`."""
        far = (distances > FAR_AT) & (inputs.moved_bytes >= FAR_FROM_BYTES)
        found = np.where(far, FAR, MEASURED).astype(np.int64)
        for row in np.flatnonzero(np.isnan(distances)):
            alike = np.all([self.raw[name] == inputs.raw[name][row] for name in self.codes], axis=0)
            found[row] = OTHER_TYPE if np.any(alike) else UNSEEN
        return found


def width_factors(of_form: Floats) -> Floats:
    """The factors by which kernels at these distances from their form err more than usual ones, labels' noise aside."""
    factors: Floats = np.interp(np.log1p(of_form), np.log1p(_FORM_DISTANCES), _FORM_FACTORS)
    return np.where(np.isfinite(of_form), factors, _OTHER_FORM_FACTOR)


def measured_text(table: Table, codes: Sequence[str]) -> dict[str, str]:
    """Write the rows of `table`; `codes` names the features of its kind that are codes."""
    labels, inputs = table.labels, table.inputs
    error = np.full(len(inputs), _UNKNOWN) if labels.error is None else labels.error
    values = {
        "keys": [kernel.key for kernel in inputs.kernels],
        "hot_ns": _short(labels.hot_ns),
        "rotated_ns": _short(labels.rotated_ns),
        "error": _short(np.where(np.isfinite(error), error, table.variation)),
        "raw": {name: _short(column) for name, column in inputs.raw.items()},
        "codes": [name for name in codes if name in inputs.raw],
        "dtype": _short(inputs.matrix[:, inputs.names.index("dtype_code")]),
    }
    return {MEASURED_FILE: to_text(values)}


def measured_from(texts: Mapping[str, str]) -> MeasuredKernels | None:
    """Read what `measured_text` wrote; None for predictors without it. Raises `KeyError` or `ValueError`."""
    if MEASURED_FILE not in texts:
        return None
    values = from_text(texts[MEASURED_FILE])
    keys = values["keys"]
    hot, rotated, error, dtype = (_column(values[name]) for name in ("hot_ns", "rotated_ns", "error", "dtype"))
    raw = {name: _column(column) for name, column in values["raw"].items()}
    shape = (len(keys),)
    check_shapes(hot_ns=(hot, shape), dtype=(dtype, shape))
    check_shapes(**{name: (column, shape) for name, column in raw.items()})  # a feature may be called dtype, too
    if rotated.shape != shape or error.shape != shape or not (hot > 0).all() or (rotated <= 0).any():
        raise ValueError(f"{MEASURED_FILE}: its labels are not one positive number per kernel")
    if not set(values["codes"]) <= set(raw):
        raise ValueError(f"{MEASURED_FILE}: a code is no feature")
    return MeasuredKernels(
        row_of={key: row for row, key in enumerate(keys)},
        hot_ns=hot,
        rotated_ns=rotated,
        error=np.where(np.isfinite(error), np.abs(error), _USUAL_ERROR),
        raw=raw,
        codes=tuple(values["codes"]),
        dtype=dtype,
    )


def _codes(raw: Mapping[str, Floats], names: Sequence[str], dtype: Floats) -> Floats:
    return np.column_stack([*(raw[name] for name in names), dtype])


def _short(column: Floats) -> list[float | int | None]:
    return [_shortened(value) for value in column.tolist()]


def _shortened(value: float) -> float | int | None:
    """Write a whole number without a point, another number with six digits, NaN as None."""
    if math.isnan(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")


def _column(values: Sequence[float | None]) -> Floats:
    return np.array([_UNKNOWN if value is None else value for value in values], dtype=np.float64)
