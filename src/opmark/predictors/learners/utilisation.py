"""Learners on log(latency / roofline) and on log(rotated / hot).

Utilisation extrapolates where latency does not: the fitted roofline carries the size, and the learner only the
efficiency. A Gaussian process learns most of a kind with few rows, LightGBM one with many; held-out shape groups decide
the share of each (`learners.residual`). A kind with fewer than five rows gets its roofline and its median utilisation.
Kernels larger than every measured one have a model of their own (`learners.extrapolation`).
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np

from opmark.predictors.inputs.alignment import aligned
from opmark.predictors.inputs.arrays import Flags, Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.fresh_results import has_fresh_results, with_fresh_results
from opmark.predictors.inputs.remainders import with_remainders
from opmark.predictors.inputs.small_images import with_small_images
from opmark.predictors.inputs.steps import with_code_path, with_steps, with_wave_losses
from opmark.predictors.inputs.switches import element_types
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_element_type import fit_by_element_type, restore_by_element_type
from opmark.predictors.learners.by_operation import fit_by_operation, restore_by_operation
from opmark.predictors.learners.by_switch import fit_by_switch, restore_by_switch
from opmark.predictors.learners.estimator import Estimator, Fitted
from opmark.predictors.learners.extrapolation.beyond import Beyond, beyond_from, fit_beyond
from opmark.predictors.learners.extrapolation.largest import Largest, fit_largest, largest_from
from opmark.predictors.learners.extrapolation.reach import Reach, fit_reach, reach_from
from opmark.predictors.learners.residual import Residual, fit_residual, residual_from, tried_residual
from opmark.predictors.learners.roofline import Roofline, fit_roofline, roofline_from

_COLUMNS_FILE = "columns.json"
# With fewer rows, more columns are mostly luck.
_ENOUGH_ROWS = 40
# Further columns must reduce the error on held-out shape groups by this share: for some kinds they are noise.
_LEAST_GAIN = 0.02
# In the order in which they are tried, and appended.
_FURTHER: Mapping[str, Callable[[Inputs], Inputs]] = {
    "alignment": aligned,
    "steps": with_steps,
    "code_path": with_code_path,
    "remainders": with_remainders,
    "small_images": with_small_images,
    "fresh_results": with_fresh_results,
    "wave_losses": with_wave_losses,
}
# Columns that say something of a few kernels only, and of which; they must help these, by this share.
_CONCERNED: Mapping[str, Callable[[Inputs], Flags]] = {"fresh_results": has_fresh_results}
_LEAST_CONCERNED = 5
_LEAST_GAIN_OF_CONCERNED = 0.1
# A vector holds as many elements as their type allows: what is left of a size says nothing of another type.
_OF_ONE_TYPE = frozenset({"remainders"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedUtilisation(Fitted):
    """A roofline, log ratios of hot latencies to it, and log ratios of rotated to hot latencies.

    Both ratios also follow the columns that `further` names, None for all of them: powers of two in sizes
    (`inputs.alignment`), what an implementation repeats and which one it is (`inputs.steps`), what whole vectors leave
    of sizes (`inputs.remainders`), the positions of small images (`inputs.small_images`), results that malloc does not
    keep (`inputs.fresh_results`), and what a GPU computes in vain (`inputs.waves`). Kernels larger than the measured
    ones have the columns of those in `reach`, and half of what they are told by `beyond` and by the learners is that of
    the `largest`, where these are known.
    """

    roofline: Roofline
    above_roofline: Residual
    rotated_above_hot: Residual | None
    beyond: Beyond | None = None
    reach: Reach | None = None
    largest: Largest | None = None
    further: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    held_out: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels."""
        base = self.roofline.latency_ns(inputs.flops, inputs.moved_bytes)
        own = inputs
        for name, columns in self.further.items():
            own = _extended(own, name, columns)
        held = own if self.reach is None else self.reach.within(own)
        hot = base * np.exp(self.above_roofline.predict(held))
        if self.beyond is not None and (larger := self.beyond.larger(own)).any():
            hot[larger] = self.beyond.latency_ns(own.take(larger), hot[larger])
        if self.largest is not None and (larger := self.largest.larger(own)).any():
            hot[larger] = self.largest.mean_ns(own.take(larger), hot[larger])
        if self.rotated_above_hot is None:
            return Latencies(hot_ns=hot, rotated_ns=hot)
        return Latencies(hot_ns=hot, rotated_ns=hot * np.exp(self.rotated_above_hot.predict(held)))

    def files(self) -> dict[str, str]:
        """Write the roofline and the learners of each label."""
        found = {"roofline.json": to_text(asdict(self.roofline))} | self.above_roofline.files("hot")
        if self.rotated_above_hot is not None:
            found |= self.rotated_above_hot.files("rotated")
        if self.beyond is not None:
            found |= self.beyond.files()
        if self.reach is not None:
            found |= self.reach.files()
        if self.largest is not None:
            found |= self.largest.files()
        told = {name: True if columns is None else columns for name, columns in self.further.items()}
        return found | ({_COLUMNS_FILE: to_text(told)} if told else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation(Estimator):
    """Learns log(latency / roofline), each element type, operation and side of a switch by itself."""

    summary: ClassVar[str] = "LightGBM and a Gaussian process on log(latency / roofline)"
    smooth: bool = True

    def fit(self, inputs: Inputs, labels: Latencies) -> Fitted:
        """Fit the roofline of each group, then the log ratios to it."""

        def fit_switched(own: Inputs, latencies: Latencies) -> Fitted:
            return fit_by_switch(own, latencies, self.held_out_errors, self.fit_group)

        return fit_by_element_type(
            inputs,
            labels,
            lambda own, latencies: fit_by_operation(own, latencies, self.held_out_errors, fit_switched),
        )

    def restore(self, files: Mapping[str, str]) -> Fitted:
        """Read all groups."""

        def restore_switched(own: Mapping[str, str]) -> Fitted:
            return restore_by_switch(own, self.restore_group)

        return restore_by_element_type(files, lambda own: restore_by_operation(own, restore_switched))

    def held_out_errors(self, inputs: Inputs, labels: Latencies) -> Floats:
        """Absolute errors on held-out shape groups, in nats, of a quick model of these rows without further columns."""
        roofline = fit_roofline(inputs.flops, inputs.moved_bytes, labels.hot_ns)
        target = np.log(labels.hot_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))
        tried = tried_residual(inputs, target, smooth=self.smooth, weight=labels.weight, brief=True)
        return np.abs(tried.held_out - target)

    def fit_group(self, inputs: Inputs, labels: Latencies) -> FittedUtilisation:
        """Fit one group of rows."""
        roofline = fit_roofline(inputs.flops, inputs.moved_bytes, labels.hot_ns)
        base = roofline.latency_ns(inputs.flops, inputs.moved_bytes)
        above, columns, further = self._above(inputs, np.log(labels.hot_ns / base), labels.weight)
        known = np.isfinite(labels.rotated_ns)
        rotated = None
        assert above.held_out is not None
        hot_ns = base * np.exp(above.held_out)
        rotated_ns = hot_ns.copy()
        if known.any():
            target = np.log(labels.rotated_ns[known] / labels.hot_ns[known])
            rotated = fit_residual(columns.take(known), target, smooth=self.smooth, weight=labels.take(known).weight)
            assert rotated.held_out is not None
            rotated_ns[known] *= np.exp(rotated.held_out)
        return FittedUtilisation(
            roofline=roofline,
            above_roofline=above,
            rotated_above_hot=rotated,
            beyond=fit_beyond(columns, labels),
            reach=fit_reach(columns, labels),
            largest=fit_largest(columns, labels),
            further=further,
            held_out=Latencies(hot_ns=hot_ns, rotated_ns=rotated_ns),
        )

    def _above(
        self, inputs: Inputs, target: Floats, weight: Floats | None
    ) -> tuple[Residual, Inputs, dict[str, tuple[str, ...] | None]]:
        """Learn `target` from the usual columns, and from those `_FURTHER` that predict held-out groups better."""
        best = tried_residual(inputs, target, smooth=self.smooth, weight=weight, brief=True)
        chosen: dict[str, tuple[str, ...] | None] = {}
        mixed = len(np.unique(element_types(inputs))) > 1
        for name in _FURTHER if len(inputs) >= _ENOUGH_ROWS else ():
            columns = () if mixed and name in _OF_ONE_TYPE else _telling(best.inputs, name)
            concerned = _CONCERNED[name](inputs) if name in _CONCERNED else np.ones(len(inputs), dtype=bool)
            if not columns or concerned.sum() < _LEAST_CONCERNED:
                continue
            more = _extended(best.inputs, name, columns)
            found = tried_residual(
                more, target, smooth=self.smooth, weight=weight, brief=True, start=best.lengths_for(more)
            )
            gain = _LEAST_GAIN_OF_CONCERNED if name in _CONCERNED else _LEAST_GAIN
            if found.error_of(concerned) < (1 - gain) * best.error_of(concerned) and found.error <= best.error:
                best = found
                chosen[name] = columns
        whole = tried_residual(best.inputs, target, smooth=self.smooth, weight=weight).refined()
        return whole.fitted(), whole.inputs, chosen

    def restore_group(self, files: Mapping[str, str]) -> FittedUtilisation:
        """Read one group."""
        columns = from_text(files[_COLUMNS_FILE]) if _COLUMNS_FILE in files else {}
        return FittedUtilisation(
            roofline=roofline_from(from_text(files["roofline.json"])),
            above_roofline=residual_from(files, "hot"),
            rotated_above_hot=residual_from(files, "rotated") if "rotated-smooth.json" in files else None,
            beyond=beyond_from(files),
            reach=reach_from(files),
            largest=largest_from(files),
            further={name: _named(columns[name]) for name in _FURTHER if columns.get(name, False) is not False},
        )


def _named(columns: Any) -> tuple[str, ...] | None:
    """Read the names of further columns; bundles up to 1.13.0 say `true` for all of them, some copies `null`."""
    return None if columns is True or columns is None else tuple(columns)


def _extended(inputs: Inputs, name: str, columns: tuple[str, ...] | None) -> Inputs:
    """Append `columns`, or all, of those that `name` in `_FURTHER` tells."""
    more = _FURTHER[name](inputs)
    return more if columns is None else more.only({*inputs.names, *columns})


def _telling(inputs: Inputs, name: str) -> tuple[str, ...]:
    """The columns of `name` in `_FURTHER` that differ between the rows, and from each other."""
    more = _FURTHER[name](inputs)
    found: dict[bytes, str] = {}
    for column in range(len(inputs.names), len(more.names)):
        values = more.matrix[:, column]
        if np.ptp(values) > 0:
            found.setdefault(values.tobytes(), more.names[column])
    return tuple(found.values())
