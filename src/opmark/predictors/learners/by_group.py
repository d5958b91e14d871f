"""A model for each group of a kind's kernels: by element type, and by code path of a convolution.

A runtime computes in bfloat16 or 8 bits with other code than in float32, four times as fast or slower than the bytes
suggest. Learned together, a kernel whose own type has few neighbours gets a latency in between (decision 0015).

PyTorch computes 32-bit convolutions on CPUs either with oneDNN or with its own column matrices and a product, by a rule
of sizes (`use_mkldnn` in aten/src/ATen/native/Convolution.cpp, 2.13). Latency jumps up to tenfold at its thresholds,
and one model of both paths is right on neither side (decision 0016). Held-out rows show whether a runtime jumps.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.predictors.inputs.arrays import Flags, Floats, Integers, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.estimator import Fitted

Fit = Callable[[Inputs, Latencies], Fitted]
Restore = Callable[[Mapping[str, str]], Fitted]

# An element type with fewer rows learns more from rows of other types than it loses by them.
_ENOUGH_ROWS_OF_TYPE = 60
_OTHERS = -2
_FLOAT32 = list(DTYPE_BYTES).index("float32")

_PATH_COLUMNS = (
    *("batch", "channels_in", "height", "width", "kernel_height", "kernel_width"),
    *("stride", "dilation", "groups"),
)
# A path with fewer rows learns more from the other path than it loses by it.
_ENOUGH_ROWS_OF_PATH = 40
# Two models must reduce the error on held-out shape groups by this share: a jump does, the luck of small models rarely.
_LEAST_GAIN = 0.15
_PATH_PREFIX = "path-"
# PyTorch's thresholds for one thread: samples and input elements from which it takes oneDNN, and the largest kernel for
# which it may do without.
_MANY_SAMPLES = 16
_MANY_ELEMENTS = 20480
_LARGE_KERNEL = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByGroup(Fitted):
    """One model per group; `models` maps the number of a group to its model."""

    prefix: ClassVar[str] = ""
    models: Mapping[int, Fitted]
    held_out: Latencies | None = None

    @abstractmethod
    def groups(self, inputs: Inputs) -> Integers:
        """Number the group of each kernel."""

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels of each kernel with the model of its group."""
        groups = self.groups(inputs)
        parts = {group: self.models[group].predict(inputs.take(groups == group)) for group in set(groups)}
        return _joined(groups, parts)

    def files(self) -> dict[str, str]:
        """Write the files of every model, with the group in front of each name."""
        return {
            f"{self.prefix}{group}.{name}": text
            for group, model in self.models.items()
            for name, text in model.files().items()
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByElementType(ByGroup):
    """A model for each common element type; the model `others` predicts all other types."""

    others: int

    def groups(self, inputs: Inputs) -> Integers:
        """Number each kernel by the code of its element type."""
        codes = element_types(inputs)
        return np.where(np.isin(codes, list(self.models)), codes, self.others)

    def files(self) -> dict[str, str]:
        """Write the files of every model, and which one predicts other types."""
        return {"others.json": to_text({"code": self.others})} | ByGroup.files(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByCodePath(ByGroup):
    """A model for each of two code paths, 0 and 1."""

    prefix: ClassVar[str] = _PATH_PREFIX

    def groups(self, inputs: Inputs) -> Integers:
        """Number each kernel by its code path."""
        return code_paths(inputs)


def element_types(inputs: Inputs) -> Integers:
    """Look up the code of each kernel's element type."""
    codes: Integers = inputs.matrix[:, inputs.names.index("dtype_code")].astype(np.int64)
    return codes


def code_paths(inputs: Inputs) -> Integers:
    """1 for a 32-bit convolution that PyTorch computes on one thread without oneDNN, 0 for every other kernel."""
    if any(name not in inputs.raw for name in _PATH_COLUMNS):
        return np.zeros(len(inputs), dtype=np.int64)
    raw = inputs.raw
    height, width = raw["kernel_height"], raw["kernel_width"]
    worthwhile = (raw["stride"] > 1) | (raw["dilation"] > 1) | (raw["batch"] >= _MANY_SAMPLES) | (height * width > 1)
    elements = raw["batch"] * raw["channels_in"] * raw["height"] * raw["width"]
    large = (raw["groups"] > 1) | (np.minimum(height, width) > _LARGE_KERNEL) | (raw["batch"] > 1)
    without = ~(worthwhile & (large | (elements > _MANY_ELEMENTS))) & (element_types(inputs) == _FLOAT32)
    paths: Integers = without.astype(np.int64)
    return paths


def fit_by_element_type(inputs: Inputs, labels: Latencies, fit: Fit) -> Fitted:
    """Call `fit` on the rows of each common element type, or once where there is only one type."""
    codes = element_types(inputs)
    known, counts = np.unique(codes, return_counts=True)
    common = [int(code) for code, count in zip(known, counts, strict=True) if count >= _ENOUGH_ROWS_OF_TYPE]
    if len(known) == 1 or not common:
        return fit(inputs, labels)
    groups = {code: codes == code for code in common}
    if len(common) < len(known):
        # rare types learn from all rows
        groups[_OTHERS] = np.ones(len(codes), dtype=bool)
    models = {code: fit(inputs.take(rows), labels.take(rows)) for code, rows in groups.items()}
    assigned = np.where(np.isin(codes, common), codes, _OTHERS)
    held_out = {
        code: _without_own_group(fit, inputs, labels, groups[code], model.held_out).take(assigned[groups[code]] == code)
        for code, model in models.items()
        if model.held_out is not None
    }
    return ByElementType(
        models=models,
        others=_OTHERS if _OTHERS in models else int(known[np.argmax(counts)]),
        held_out=_joined(assigned, held_out) if len(held_out) == len(models) else None,
    )


def _without_own_group(fit: Fit, inputs: Inputs, labels: Latencies, own: Flags, held_out: Latencies) -> Latencies:
    """The predictions `held_out` of the rows `own`, or those of all other rows where `own` is a single shape group.

    Within a single group, rows were dealt out one by one: each was predicted from its siblings.
    """
    alone = inputs.take(own)
    if own.all() or len(set(shape_groups(alone.kernels))) > 1:
        return held_out
    return fit(inputs.take(~own), labels.take(~own)).predict(alone)


def restore_by_element_type(files: Mapping[str, str], restore: Restore) -> Fitted:
    """Read what `fit_by_element_type` made. Raises `KeyError` or `ValueError` on foreign text."""
    codes = {int(name.partition(".")[0]) for name in files if name.partition(".")[0].lstrip("-").isdigit()}
    if not codes:
        return restore(files)
    models = {code: restore(starting_with(files, f"{code}.")) for code in sorted(codes)}
    return ByElementType(models=models, others=int(from_text(files["others.json"])["code"]))


def fit_by_code_path(inputs: Inputs, labels: Latencies, fit: Fit) -> Fitted:
    """Call `fit` on all rows, or on those of each path where that predicts held-out rows better."""
    together = fit(inputs, labels)
    paths = code_paths(inputs)
    if np.bincount(paths, minlength=2).min() < _ENOUGH_ROWS_OF_PATH or together.held_out is None:
        return together
    models = {path: fit(inputs.take(paths == path), labels.take(paths == path)) for path in (0, 1)}
    parts = {path: model.held_out for path, model in models.items() if model.held_out is not None}
    if len(parts) < len(models):
        return together
    held_out = _joined(paths, parts)
    if _error(held_out, labels) > (1 - _LEAST_GAIN) * _error(together.held_out, labels):
        return together
    return ByCodePath(models=models, held_out=held_out)


def restore_by_code_path(files: Mapping[str, str], restore: Restore) -> Fitted:
    """Read what `fit_by_code_path` made. Raises `KeyError` or `ValueError` on foreign text."""
    if not any(name.startswith(_PATH_PREFIX) for name in files):
        return restore(files)
    return ByCodePath(models={path: restore(starting_with(files, f"{_PATH_PREFIX}{path}.")) for path in (0, 1)})


def starting_with(files: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Select the files whose name starts with `prefix`, and remove it."""
    return {name.removeprefix(prefix): text for name, text in files.items() if name.startswith(prefix)}


def _joined(groups: Integers, parts: Mapping[int, Latencies]) -> Latencies:
    """Put the latencies of all groups in the order of the rows."""
    hot_ns, rotated_ns = np.empty(len(groups)), np.empty(len(groups))
    for group, part in parts.items():
        rows = groups == group
        hot_ns[rows], rotated_ns[rows] = part.hot_ns, part.rotated_ns
    return Latencies(hot_ns=hot_ns, rotated_ns=rotated_ns)


def _error(predicted: Latencies, labels: Latencies) -> float:
    errors: Floats = np.abs(np.log(predicted.hot_ns / labels.hot_ns))
    return float(errors.mean())
