"""Operations of a kind, and forms of a convolution: each is computed by loops of its own."""

import numpy as np

from opmark.predictors.inputs.arrays import Integers
from opmark.predictors.inputs.features import Inputs

# Columns that hold the code of an operation.
_OPERATIONS = ("op", "mode")
_FORM = "form"
_FORM_COLUMNS = ("kernel_height", "kernel_width", "groups", "channels_in")
_DENSE, _POINTWISE, _GROUPED, _DEPTHWISE = range(4)


def operation_column(inputs: Inputs) -> str | None:
    """Name what tells the operations of a kind apart: a column of their codes, or the form of a convolution."""
    found = next((column for column in _OPERATIONS if column in inputs.raw), None)
    if found is None and all(column in inputs.raw for column in _FORM_COLUMNS):
        return _FORM
    return found


def operation_codes(inputs: Inputs, column: str) -> Integers:
    """Look up the code of each kernel's operation. Raises `KeyError` for a column that the kind does not have."""
    if column != _FORM:
        codes: Integers = inputs.raw[column].astype(np.int64)
        return codes
    raw = inputs.raw
    pointwise = (raw["kernel_height"] == 1) & (raw["kernel_width"] == 1)
    forms: Integers = np.where(pointwise, _POINTWISE, _DENSE)
    depthwise = raw["groups"] == raw["channels_in"]
    return np.where(raw["groups"] > 1, np.where(depthwise, _DEPTHWISE, _GROUPED), forms)
