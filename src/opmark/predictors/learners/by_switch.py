"""A model for each side of a switch, where rows show that a runtime has two codes.

ONNX Runtime computes convolutions of blocked channels with other code than plain ones, PyTorch some with oneDNN and
some with its own product. Latency jumps between two codes, and one model of both is right on neither side (decisions
0016 and 0043).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Flags, Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import are_enough
from opmark.predictors.inputs.switches import WITHOUT_ONEDNN, switched, switches
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_element_type import Fit, Restore, joined, starting_with
from opmark.predictors.learners.estimator import Fitted
from opmark.predictors.learners.roofline import fit_roofline

# The errors of held-out rows in nats, for one model of these rows.
Errors = Callable[[Inputs, Latencies], Floats]

# A side with fewer rows learns more from the other side than it loses by it.
_ENOUGH_ROWS = 40
# Two models must reduce the error on held-out shape groups by this share: two codes do, luck of small models rarely.
_LEAST_GAIN = 0.1
# Learning both sides takes long. It is tried for the switches that divide rooflines best, if they do by this share.
_MOST_TRIED = 3
_LEAST_DIFFERENCE = 0.03
_FILE = "switch.json"
_OFF, _ON = "off.", "on."
# Older bundles hold both sides of one rule under these names.
_OLD_OFF, _OLD_ON = "path-0.", "path-1."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BySwitch(Fitted):
    """A model for the kernels that the switch `name` is `off` for, and one for those that it is `on` for."""

    name: str
    off: Fitted
    on: Fitted
    held_out: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels of each kernel with the model of its side."""
        side = switched(inputs, self.name)
        models = {0: self.off, 1: self.on}
        parts = {int(own): models[int(own)].predict(inputs.take(side == own)) for own in np.unique(side)}
        return joined(side.astype(np.int64), parts)

    def files(self) -> dict[str, str]:
        """Write the name of the switch, and the files of both models."""
        sides = {_OFF: self.off, _ON: self.on}
        files = {f"{prefix}{name}": text for prefix, side in sides.items() for name, text in side.files().items()}
        return {_FILE: to_text({"name": self.name})} | files


def fit_by_switch(inputs: Inputs, labels: Latencies, errors: Errors, fit: Fit) -> Fitted:
    """Call `fit` on all rows, or on each side of the switch that predicts held-out rows best, and so on within it."""
    return _grown(inputs, labels, errors, fit, None)


def _grown(inputs: Inputs, labels: Latencies, errors: Errors, fit: Fit, together: Floats | None) -> Fitted:
    best: tuple[str, Flags, Floats] | None = None
    for name, on in _promising(inputs, labels).items():
        together = errors(inputs, labels) if together is None else together
        apart = np.empty(len(inputs))
        for side in (on, ~on):
            apart[side] = errors(inputs.take(side), labels.take(side))
        least = (1 - _LEAST_GAIN) * together.mean() if best is None else best[2].mean()
        if apart.mean() < least:
            best = name, on, apart
    if best is None:
        return fit(inputs, labels)
    name, on, apart = best
    models = [_grown(inputs.take(side), labels.take(side), errors, fit, apart[side]) for side in (~on, on)]
    parts = {number: model.held_out for number, model in enumerate(models) if model.held_out is not None}
    held_out = joined(on.astype(np.int64), parts) if len(parts) == len(models) else None
    return BySwitch(name=name, off=models[0], on=models[1], held_out=held_out)


def _promising(inputs: Inputs, labels: Latencies) -> dict[str, Flags]:
    """The switches whose sides have different rooflines, those that differ most first."""
    if len(inputs) < 2 * _ENOUGH_ROWS:
        return {}
    spread = _spread(inputs, labels)
    found: dict[str, tuple[float, Flags]] = {}
    known = set()
    for name, on in switches(inputs).items():
        # the opposite of a switch divides as it does
        division = (on ^ on[:1]).tobytes()
        if division in known or not all(are_enough(inputs.take(side).kernels, _ENOUGH_ROWS) for side in (on, ~on)):
            continue
        known.add(division)
        apart = sum(_spread(inputs.take(side), labels.take(side)) for side in (on, ~on))
        if apart < (1 - _LEAST_DIFFERENCE) * spread:
            found[name] = apart, on
    best = sorted(found, key=lambda name: found[name][0])[:_MOST_TRIED]
    return {name: found[name][1] for name in best}


def _spread(inputs: Inputs, labels: Latencies) -> float:
    """The sum of distances, in nats, between latencies over their common roofline and the median."""
    roofline = fit_roofline(inputs.flops, inputs.moved_bytes, labels.hot_ns)
    above = np.log(labels.hot_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))
    return float(np.abs(above - np.median(above)).sum())


def restore_by_switch(files: Mapping[str, str], restore: Restore) -> Fitted:
    """Read what `fit_by_switch` made. Raises `KeyError` or `ValueError` on foreign text."""
    if _FILE in files:
        name, off, on = str(from_text(files[_FILE])["name"]), _OFF, _ON
    elif any(name.startswith(_OLD_OFF) for name in files):
        name, off, on = WITHOUT_ONEDNN, _OLD_OFF, _OLD_ON
    else:
        return restore(files)
    sides = [restore_by_switch(starting_with(files, prefix), restore) for prefix in (off, on)]
    return BySwitch(name=name, off=sides[0], on=sides[1])
