"""A model for each of two codes that a runtime may run for a convolution, where rows show that it has both.

PyTorch computes 32-bit convolutions on CPUs with oneDNN or with its own column matrices and a product, by a rule of
sizes (`use_mkldnn` in aten/src/ATen/native/Convolution.cpp, 2.13). At its thresholds latency jumps up to tenfold, and a
model of both is right on neither side (decision 0016). Whether a runtime has such a jump is found on held-out rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.core.tensor import DTYPE_BYTES
from opmark.predictors.inputs.arrays import Floats, Integers
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.by_element_type import element_types, joined, taken
from opmark.predictors.learners.estimator import Fitted, Latencies

_COLUMNS = ("batch", "channels_in", "height", "width", "kernel_height", "kernel_width", "stride", "dilation", "groups")
_FLOAT32 = list(DTYPE_BYTES).index("float32")
# Fewer rows than this on a path learn more from the other path than they lose by it.
_ENOUGH_ROWS = 40
# What two models must bring on rows whose shape group was held out: a jump brings more, smaller models some luck.
_LEAST_GAIN = 0.15
_PREFIX = "path-"
# The rule's numbers for one thread: samples and input elements from which oneDNN is taken, kernels it is never below.
_MANY_SAMPLES = 16
_MANY_ELEMENTS = 20480
_LARGE_KERNEL = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByCodePath(Fitted):
    """`models` by code path, 0 and 1."""

    models: Mapping[int, Fitted]
    made_without: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Both labels, each kernel by the model of its path."""
        paths = code_paths(inputs)
        return joined(paths, {path: self.models[path].predict(inputs.take(paths == path)) for path in set(paths)})

    def files(self) -> dict[str, str]:
        """Those of both models, the path before each name."""
        return {
            f"{_PREFIX}{path}.{name}": text
            for path, model in self.models.items()
            for name, text in model.files().items()
        }

    @property
    def held_out(self) -> Latencies | None:
        """Predictions of the training rows without their own shape group."""
        return self.made_without


def code_paths(inputs: Inputs) -> Integers:
    """1 for a 32-bit convolution that torch computes on one thread without oneDNN, 0 for every other kernel."""
    if any(name not in inputs.raw for name in _COLUMNS):
        return np.zeros(len(inputs), dtype=np.int64)
    raw = inputs.raw
    height, width = raw["kernel_height"], raw["kernel_width"]
    worthwhile = (raw["stride"] > 1) | (raw["dilation"] > 1) | (raw["batch"] >= _MANY_SAMPLES) | (height * width > 1)
    elements = raw["batch"] * raw["channels_in"] * raw["height"] * raw["width"]
    large = (raw["groups"] > 1) | (np.minimum(height, width) > _LARGE_KERNEL) | (raw["batch"] > 1)
    without = ~(worthwhile & (large | (elements > _MANY_ELEMENTS))) & (element_types(inputs) == _FLOAT32)
    paths: Integers = without.astype(np.int64)
    return paths


def fit_by_code_path(inputs: Inputs, labels: Latencies, fit: Callable[[Inputs, Latencies], Fitted]) -> Fitted:
    """`fit` on all rows, or on each path's own where that predicts held-out rows better."""
    together = fit(inputs, labels)
    paths = code_paths(inputs)
    if np.bincount(paths, minlength=2).min() < _ENOUGH_ROWS or together.held_out is None:
        return together
    models = {path: fit(inputs.take(paths == path), taken(labels, paths == path)) for path in (0, 1)}
    parts = {path: model.held_out for path, model in models.items() if model.held_out is not None}
    if len(parts) < len(models):
        return together
    without = joined(paths, parts)
    if _error(without, labels) > (1 - _LEAST_GAIN) * _error(together.held_out, labels):
        return together
    return ByCodePath(models=models, made_without=without)


def restore_by_code_path(files: Mapping[str, str], restore: Callable[[Mapping[str, str]], Fitted]) -> Fitted:
    """What `Fitted.files` described. Raises `KeyError` or `ValueError` on foreign text."""
    if not any(name.startswith(_PREFIX) for name in files):
        return restore(files)
    models = {}
    for path in (0, 1):
        start = f"{_PREFIX}{path}."
        models[path] = restore({name[len(start) :]: text for name, text in files.items() if name.startswith(start)})
    return ByCodePath(models=models)


def _error(predicted: Latencies, labels: Latencies) -> float:
    errors: Floats = np.abs(np.log(predicted.hot_ns / labels.hot_ns))
    return float(errors.mean())
