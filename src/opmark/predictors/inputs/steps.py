"""Columns of what an implementation of a kernel repeats, and of the code that a library chooses by sizes.

Sizes alone do not tell that attention multiplies in blocks of 32 queries, so that 33 queries take twice the calls, or
that a filter with much padding is computed by another code.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opmark.core.kernels.kind import Kind
from opmark.kinds import KINDS
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.waves import wave_losses


def with_steps(inputs: Inputs) -> Inputs:
    """Append the `steps` of the kind; the same `inputs` where it tells none, or there is no kernel.

    A smooth surface can follow these columns, too.
    """
    return _with_columns(inputs, lambda kind: kind.steps)


def with_code_path(inputs: Inputs) -> Inputs:
    """Append the `code_path` of the kind, like `with_steps`."""
    return _with_columns(inputs, lambda kind: kind.code_path)


def with_wave_losses(inputs: Inputs) -> Inputs:
    """Append what a GPU's whole waves of whole tiles compute in vain (`waves`).

    The same `inputs` for a processor, and for kernels that multiply no matrices.
    """
    found = wave_losses(inputs.raw, inputs.multiprocessors) if inputs.multiprocessors else {}
    return inputs.with_columns(found) if found else inputs


def _with_columns(inputs: Inputs, told_by: Callable[[Kind[Any]], Callable[[Any], dict[str, float]]]) -> Inputs:
    kind = KINDS.load(inputs.kind)
    told = told_by(kind)
    if not inputs.kernels or not (first := told(kind.parse(inputs.kernels[0]))):
        return inputs
    rows = [told(kind.parse(kernel)) for kernel in inputs.kernels]
    names = tuple(first)
    columns = np.array([list(row.values()) for row in rows], dtype=np.float64)
    return inputs.with_columns(dict(zip(names, columns.T, strict=True)))
