"""Columns of what an implementation of a kernel repeats: calls, rows, blocks.

Sizes alone do not tell that attention multiplies in blocks of 32 queries, so that 33 queries take twice the calls.
"""

import numpy as np

from opmark.kinds import KINDS
from opmark.predictors.inputs.features import Inputs


def with_steps(inputs: Inputs) -> Inputs:
    """Append the `steps` of the kind; the same `inputs` where it tells none, or there is no kernel.

    A smooth surface can follow these columns, too.
    """
    kind = KINDS.load(inputs.kind)
    rows = [kind.steps(kind.parse(kernel)) for kernel in inputs.kernels]
    if not rows or not rows[0]:
        return inputs
    names = tuple(rows[0])
    columns = np.array([list(row.values()) for row in rows], dtype=np.float64)
    return inputs.with_columns(dict(zip(names, columns.T, strict=True)))
