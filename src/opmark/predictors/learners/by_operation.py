"""A model for each operation of a kind, or form of a convolution, that is told better by itself.

A kind such as `movement` holds twenty operations, each with loops of its own. One model of all has the same lengths for
each of them. Operations with rows enough get their own where held-out shape groups say that it is better; the model of
all rows tells the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.operations import operation_codes, operation_column
from opmark.predictors.inputs.shape_groups import are_enough
from opmark.predictors.inputs.switches import element_types
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_element_type import Fit, Restore, joined, starting_with
from opmark.predictors.learners.by_switch import Errors
from opmark.predictors.learners.estimator import Fitted

_ENOUGH_ROWS = 60
# The operation's own model must reduce its error on held-out shape groups by this share.
_LEAST_GAIN = 0.03
_FILE = "operations.json"
_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ByOperation(Fitted):
    """A model for each code in `column` that has one of its own; `all_rows` predicts every other operation."""

    column: str
    models: Mapping[int, Fitted]
    all_rows: Fitted
    held_out: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels of each kernel with the model of its operation."""
        codes = operation_codes(inputs, self.column)
        codes = np.where(np.isin(codes, list(self.models)), codes, _ALL)
        models = {**self.models, _ALL: self.all_rows}
        parts = {int(code): models[int(code)].predict(inputs.take(codes == code)) for code in np.unique(codes)}
        return joined(codes, parts)

    def files(self) -> dict[str, str]:
        """Write the codes of the operations, and the files of every model."""
        models = {f"operation-{code}.": model for code, model in self.models.items()} | {"all.": self.all_rows}
        files = {f"{prefix}{name}": text for prefix, model in models.items() for name, text in model.files().items()}
        return {_FILE: to_text({"column": self.column, "codes": sorted(self.models)})} | files


def fit_by_operation(inputs: Inputs, labels: Latencies, errors: Errors, fit: Fit) -> Fitted:
    """Call `fit` on all rows, and on those of each common operation that it tells better alone.

    Learning takes long: `errors` of quick models say first whether it may help.
    """
    all_rows = fit(inputs, labels)
    column = operation_column(inputs)
    # rows of several element types stand in for rare types, whose operations are rarer still
    if column is None or all_rows.held_out is None or len(np.unique(element_types(inputs))) > 1:
        return all_rows
    codes = operation_codes(inputs, column)
    together, quickly = _errors(all_rows.held_out, labels), errors(inputs, labels)
    models: dict[int, Fitted] = {}
    parts = {_ALL: all_rows.held_out}
    for code in np.unique(codes).tolist():
        own = codes == code
        if own.all() or not are_enough(inputs.take(own).kernels, _ENOUGH_ROWS):
            continue
        if errors(inputs.take(own), labels.take(own)).mean() > quickly[own].mean():
            continue
        model = fit(inputs.take(own), labels.take(own))
        assert model.held_out is not None
        if _errors(model.held_out, labels.take(own)).mean() < (1 - _LEAST_GAIN) * together[own].mean():
            models[code], parts[code] = model, model.held_out
    if not models:
        return all_rows
    chosen = np.where(np.isin(codes, list(models)), codes, _ALL)
    parts[_ALL] = all_rows.held_out.take(chosen == _ALL)
    return ByOperation(column=column, models=models, all_rows=all_rows, held_out=joined(chosen, parts))


def restore_by_operation(files: Mapping[str, str], restore: Restore) -> Fitted:
    """Read what `fit_by_operation` made. Raises `KeyError` or `ValueError` on foreign text."""
    if _FILE not in files:
        return restore(files)
    told = from_text(files[_FILE])
    return ByOperation(
        column=str(told["column"]),
        models={int(code): restore(starting_with(files, f"operation-{code}.")) for code in told["codes"]},
        all_rows=restore(starting_with(files, "all.")),
    )


def _errors(held_out: Latencies, labels: Latencies) -> Floats:
    errors: Floats = np.abs(np.log(held_out.hot_ns / labels.hot_ns))
    return errors
