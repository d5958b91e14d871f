"""Judge a predictor that was made from few samples and a donor, on shape groups that it is made again without."""

from collections.abc import Sequence

import numpy as np

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.tables import Table, kernels_of
from opmark.predictors.judging.evidence import Judged
from opmark.predictors.judging.noise_floors import kernel_noise
from opmark.predictors.model.adapted_learner import FittedTransfer
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.transfer.methods import METHODS, Rows


def judge_transferred(sides: Sequence[tuple[str, Table, Table]], bundle: Bundle) -> Judged | None:
    """Correct the donor of `bundle` with the first table of each kind and predict the second; None without any kind.

    Raises `KeyError` for a bundle that was not made by transfer.
    """
    if not sides:
        return None
    if bundle.manifest.transfer is None:
        raise KeyError("no transfer")
    training = _rows([known for _, known, _ in sides], bundle)
    test = _rows([judging for _, _, judging in sides], bundle)
    predicted = METHODS[bundle.manifest.transfer.method](training).hot_ns(test)
    noise = np.hstack([np.stack(kernel_noise(table)) for table in test.tables])
    return Judged(
        kinds=tuple(table.inputs.kind for table in test.tables for _ in table.inputs.kernels),
        families=tuple(shape_groups(kernels_of(test.tables))),
        measured_ns=test.hot_ns,
        predicted_ns=predicted,
        variation=noise[0],
        deviation=noise[1],
    )


def _rows(tables: Sequence[Table], bundle: Bundle) -> Rows:
    return Rows(tables=tuple(tables), donor_ns=tuple(_donor_ns(table, bundle) for table in tables))


def _donor_ns(table: Table, bundle: Bundle) -> Floats:
    fitted = bundle.kinds[table.inputs.kind].fitted
    if isinstance(fitted, FittedTransfer) and fitted.donor is not None:
        return fitted.donor.latencies(table.inputs).hot_ns
    return np.ones(len(table.inputs))
