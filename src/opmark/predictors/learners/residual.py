"""The residual of a simple law, learned by a mixture of boosted trees and a Gaussian process.

Trees follow thresholds and codes, and need many rows; on a hundred rows a Gaussian process is better by a factor of
two. The share of each minimises the error on held-out shape groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opmark.core.canonical import content_id
from opmark.predictors.inputs.arrays import Flags, Floats, Integers, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.learners.covariance import initial_hyper
from opmark.predictors.learners.gaussian_process import (
    SEARCH_ROWS,
    GaussianProcess,
    LengthSearch,
    fit_process,
    process_from,
)
from opmark.predictors.learners.tree_ensemble import TreeEnsemble
from opmark.predictors.learners.trees import (
    compact_trees,
    ensemble_from,
    grown_trees,
    held_out_trees,
)

# With fewer rows there is nothing to hold out; from here on a smooth surface halves the error of a median.
LEAST_ROWS = 5
_FOLDS = 5
_FEWER_FOLDS = 3
_FEWER_FOLDS_FROM = 3000
# Twice the rows that a process searches its lengths on, and eight times the time.
_REFINED_SEARCH_ROWS = 2 * SEARCH_ROWS
_USUAL_SHARE = 0.6
# Penalty on shares unlike the usual one, for one row; it falls with the root of the number of rows.
_DOUBT = 2.0
_SHARES = np.linspace(0.0, 0.9, 10)
# A predicted residual stays within the range of the training rows, widened by this many nats.
_MARGIN = 0.25
# Columns are logarithms and shares: smaller differences mean nothing, and rounding makes the text short.
_DECIMALS = 6
# Columns in the order of the moved bytes, or of the bytes of weights, which have columns of their own.
_SAME_ORDER = ("beyond_cache_", "weights_beyond_cache_")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residual:
    """A fitted residual: `smooth_share` from the process, the rest from trees, kept within [`low`, `high`].

    `held_out` are predictions of the training rows, each without its own shape group.
    """

    low: float
    high: float
    median: float
    smooth_share: float
    codes: Mapping[int, tuple[float, ...]]
    trees: str = ""
    process: GaussianProcess | None = None
    ensemble: TreeEnsemble | None = None
    held_out: Floats | None = field(default=None)

    def predict(self, inputs: Inputs) -> Floats:
        """Predict the residual of each kernel, in nats."""
        total = np.zeros(len(inputs))
        if not len(inputs):
            return total
        if self.process is not None:
            total += self.smooth_share * self.process.predict(_smooth_columns(inputs, self.codes))
        if self.ensemble is not None:
            total += (1 - self.smooth_share) * self.ensemble.predict(inputs.matrix)
        if self.process is None and self.ensemble is None:
            total += self.median
        clipped: Floats = np.clip(total, self.low, self.high)
        return clipped

    def similarity(self, inputs: Inputs) -> Floats:
        """Find how much each kernel, 0 to 1, is like the training row most like it; 1 where no process tells."""
        if self.process is None:
            return np.ones(len(inputs))
        return self.process.similarity(_smooth_columns(inputs, self.codes))

    def files(self, label: str) -> dict[str, str]:
        """Write files that start with `label`, and one of rows that residuals of the same kernels share."""
        rows = {} if self.process is None else _rows_file(self.process)
        values = {
            "low": self.low,
            "high": self.high,
            "median": self.median,
            "smooth_share": self.smooth_share,
            "codes": {str(column): list(codes) for column, codes in self.codes.items()},
            "process": None if self.process is None else {**_listed(self.process), "rows": next(iter(rows))},
        }
        found = {f"{label}-smooth.json": to_text(values), **rows}
        if self.ensemble is not None:
            found[f"{label}-trees.txt"] = self.trees
        return found


def residual_from(files: Mapping[str, str], label: str) -> Residual:
    """Read the files of `Residual.files`. Raises `KeyError` or `ValueError` on foreign text."""
    values = from_text(files[f"{label}-smooth.json"])
    if not (values["low"] <= values["high"] and 0 <= values["smooth_share"] <= 1):
        raise ValueError(f"{label}: low, high or smooth_share is out of range")
    trees = files.get(f"{label}-trees.txt", "")
    return Residual(
        low=float(values["low"]),
        high=float(values["high"]),
        median=float(values["median"]),
        smooth_share=float(values["smooth_share"]),
        codes={int(column): tuple(codes) for column, codes in values["codes"].items()},
        trees=trees,
        process=None if values["process"] is None else _process_from(values["process"], files),
        ensemble=_ensemble(trees, f"{label}-trees.txt") if trees else None,
    )


def fit_residual(inputs: Inputs, target: Floats, *, smooth: bool = True, weight: Floats | None = None) -> Residual:
    """Learn `target` (nats, one per kernel); with `smooth=False` by trees alone. Rows count by their `weight`."""
    return tried_residual(inputs, target, smooth=smooth, weight=weight).fitted()


def smooth_residual(
    inputs: Inputs, target: Floats, *, most_rows: int, search_rows: int, weight: Floats | None = None
) -> Residual:
    """Learn `target` (nats, one per kernel) by a process of `most_rows` at most; its lengths follow `search_rows`."""
    low, high = _limits(target)
    codes = _codes(inputs)
    one_fold = np.zeros(len(inputs), dtype=np.int64)
    process, _ = fit_process(
        _smooth_columns(inputs, codes),
        target,
        one_fold,
        weight,
        most_rows=most_rows,
        search=LengthSearch(rows=search_rows),
    )
    return Residual(low=low, high=high, median=float(np.median(target)), smooth_share=1.0, codes=codes, process=process)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TriedResidual:
    """A residual that has predicted held-out rows, and whose trees have not grown on all rows yet.

    Of two of them, only the better one needs to be `fitted`.
    """

    inputs: Inputs
    target: Floats
    weight: Floats | None
    held_out: Floats
    by_trees: Floats | None = None
    rounds: int = 0
    process: GaussianProcess | None = None
    smooth_share: float = 0.0

    @property
    def error(self) -> float:
        """The mean absolute error on held-out shape groups, in nats."""
        return self.error_of(np.ones(len(self.target), dtype=bool))

    def error_of(self, rows: Flags) -> float:
        """The mean absolute error of some `rows` on held-out shape groups, in nats."""
        return float(np.abs(self.held_out - self.target)[rows].mean())

    def refined(self) -> "TriedResidual":
        """Search the lengths of a process with three covariances, on more rows.

        The result is what predicts held-out rows better, which may be itself.
        """
        if self.process is None or self.by_trees is None or len(self.target) <= SEARCH_ROWS:
            return self
        folds = _folds(self.inputs)
        search = LengthSearch(rows=_REFINED_SEARCH_ROWS, start=self.process.hyper, further=True)
        process, share, held_out = _mixed(self.inputs, self.target, folds, self.by_trees, self.weight, search=search)
        return min(
            self, replace(self, process=process, smooth_share=share, held_out=held_out), key=lambda one: one.error
        )

    def lengths_for(self, inputs: Inputs) -> Floats | None:
        """Where a search begins for `inputs`, which have further columns; None without a process."""
        if self.process is None:
            return None
        names, known = _smooth_names(inputs), _smooth_names(self.inputs)
        start = initial_hyper(len(names), self.target)
        before = len(start) - len(names)
        start[:before] = self.process.hyper[:before]
        place = {name: before + column for column, name in enumerate(known)}
        for column, name in enumerate(names):
            if name in place:
                start[before + column] = self.process.hyper[place[name]]
        return start

    def fitted(self) -> Residual:
        """Fit all rows."""
        low, high = _limits(self.target)
        median = float(np.median(self.target))
        if not self.rounds:
            return Residual(low=low, high=high, median=median, smooth_share=0.0, codes={}, held_out=self.held_out)
        varying = _varying(self.inputs)
        trees = compact_trees(grown_trees(_without_copies(self.inputs), self.target, varying, self.rounds, self.weight))
        return Residual(
            low=low,
            high=high,
            median=median,
            smooth_share=self.smooth_share,
            codes=_codes(self.inputs),
            trees=trees,
            process=self.process if self.smooth_share > 0 else None,
            ensemble=ensemble_from(trees),
            held_out=self.held_out,
        )


def tried_residual(
    inputs: Inputs,
    target: Floats,
    *,
    smooth: bool = True,
    weight: Floats | None = None,
    brief: bool = False,
    start: Floats | None = None,
) -> TriedResidual:
    """Predict held-out rows of `target` as `fit_residual` will, without fitting all of them.

    What is tried `brief`ly takes a third of the time, and tells what helps. Lengths are searched
    from `start`.
    """
    if len(inputs) < LEAST_ROWS:
        held_out = np.array(
            [np.median(np.delete(target, row)) if len(target) > 1 else 0.0 for row in range(len(target))]
        )
        return TriedResidual(inputs=inputs, target=target, weight=weight, held_out=held_out)
    folds = _folds(inputs)
    by_trees, rounds = held_out_trees(_without_copies(inputs), target, _varying(inputs), folds, weight, brief=brief)
    if not smooth:
        held_out = np.clip(by_trees, *_limits(target))
        return TriedResidual(inputs=inputs, target=target, weight=weight, held_out=held_out, rounds=rounds)
    search = LengthSearch(rows=SEARCH_ROWS, start=start, brief=brief)
    process, share, held_out = _mixed(inputs, target, folds, by_trees, weight, search=search)
    return TriedResidual(
        inputs=inputs,
        target=target,
        weight=weight,
        held_out=held_out,
        by_trees=by_trees,
        rounds=rounds,
        process=process,
        smooth_share=share,
    )


def _folds(inputs: Inputs) -> Integers:
    return group_folds(shape_groups(inputs.kernels), _FEWER_FOLDS if len(inputs) > _FEWER_FOLDS_FROM else _FOLDS)


def _mixed(
    inputs: Inputs,
    target: Floats,
    folds: Integers,
    by_trees: Floats,
    weight: Floats | None,
    *,
    search: LengthSearch,
) -> tuple[GaussianProcess, float, Floats]:
    """Fit a process; return it, its share beside the trees, and what both predict of held-out rows."""
    columns = _smooth_columns(inputs, _codes(inputs))
    process, by_process = fit_process(columns, target, folds, weight, search=search)
    share = _best_share(target, by_process, by_trees)
    held_out: Floats = np.clip(share * by_process + (1 - share) * by_trees, *_limits(target))
    return process, share, held_out


def _limits(target: Floats) -> tuple[float, float]:
    return float(target.min()) - _MARGIN, float(target.max()) + _MARGIN


def _codes(inputs: Inputs) -> dict[int, tuple[float, ...]]:
    return {column: tuple(np.unique(inputs.matrix[:, column]).tolist()) for column in inputs.categorical}


def _without_copies(inputs: Inputs) -> Floats:
    """The columns for trees, in which those that order rows as the bytes do are constant.

    Trees cut by order alone: copies of a column only take their time, a seventh of it.
    """
    copies = [column for column, name in enumerate(inputs.names) if name.startswith(_SAME_ORDER)]
    matrix = inputs.matrix.copy()
    matrix[:, copies] = 0.0
    return matrix


def _best_share(target: Floats, smooth: Floats, trees: Floats) -> float:
    # absolute error, so that a single unpredictable row does not decide; the doubt guards against the luck of few rows
    doubt = _DOUBT / np.sqrt(len(target))
    costs = [
        float(np.abs(target - share * smooth - (1 - share) * trees).mean()) * (1 + doubt * abs(share - _USUAL_SHARE))
        for share in _SHARES
    ]
    return float(_SHARES[int(np.argmin(costs))])


def _varying(inputs: Inputs) -> list[int]:
    return [column for column in inputs.categorical if np.ptp(inputs.matrix[:, column]) > 0]


def _smooth_columns(inputs: Inputs, codes: Mapping[int, tuple[float, ...]]) -> Floats:
    """Keep numeric columns, and make a 0/1 column of each code of a column with more than one code."""
    columns = [inputs.matrix[:, index] for index in inputs.smooth]
    for column, known in codes.items():
        if len(known) > 1:
            columns += [_is(inputs.matrix[:, column], code).astype(np.float64) for code in known]
    rounded: Floats = np.round(np.column_stack(columns), _DECIMALS).astype(np.float64, copy=False)
    return rounded


def _smooth_names(inputs: Inputs) -> list[tuple[str, float]]:
    """The columns of `_smooth_columns`: a name, and a code where it has one."""
    names = [(inputs.names[index], 0.0) for index in inputs.smooth]
    return names + [
        (inputs.names[column], code) for column, known in _codes(inputs).items() if len(known) > 1 for code in known
    ]


def _listed(process: GaussianProcess) -> dict[str, Any]:
    """All values of a process except its rows, as lists and numbers."""
    values = {name: value for name, value in process.values().items() if name != "rows"}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _rows_file(process: GaussianProcess) -> dict[str, str]:
    """Write the rows of a process before their standardisation, column by column, into a file named by its content."""
    # the rows were rounded, so undoing the standardisation restores every bit
    columns = np.round(process.rows * process.scale + process.centre, _DECIMALS).T.tolist()
    short = [[int(value) if value == int(value) else value for value in column] for column in columns]
    text = to_text({"columns": short})
    return {f"rows-{content_id(text)}.json": text}


def _ensemble(trees: str, name: str) -> TreeEnsemble:
    try:
        return ensemble_from(trees)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _process_from(values: Mapping[str, Any], files: Mapping[str, str]) -> GaussianProcess:
    centre, scale = np.array(values["centre"], dtype=np.float64), np.array(values["scale"], dtype=np.float64)
    columns = np.array(from_text(files[values["rows"]])["columns"], dtype=np.float64)
    # in the same memory order as in fitting; otherwise the last bit of a product differs
    rows = np.ascontiguousarray(columns.reshape(len(centre), len(values["weights"])).T)
    return process_from({**values, "rows": (rows - centre) / scale})


def _is(column: Floats, code: float) -> Flags:
    flags: Flags = column == code
    return flags
