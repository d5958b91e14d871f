"""Predictors of a quickstart: some hundred kernels teach how this machine differs from another device.

They teach this difference better than the machine itself (decision 0032).
"""

import contextlib
from collections.abc import Mapping

from opmark.core.errors import NothingSelectedError
from opmark.core.kernels.graph import Graph
from opmark.core.units import counted
from opmark.datasets.release.release import Release
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.training import train
from opmark.predictors.transfer.adapted_bundle import transfer_release
from opmark.predictors.transfer.methods import QUICK_METHODS
from opmark.predictors.transfer.shipped_donors import shipped_donors


def learned(release: Release, target: str, graphs: Mapping[str, Graph]) -> Bundle:
    """A predictor of `target`: corrected from one that comes with OpMark, or learned alone where none fits.

    Raises `NothingSelectedError` without usable rows.
    """
    donors = shipped_donors(target)
    if donors:
        # Samples of a single shape cannot judge a method.
        with contextlib.suppress(NothingSelectedError):
            return transfer_release(release, target, donors, graphs=graphs, methods=QUICK_METHODS)
    return train(release, target, graphs=graphs)


def donor_of(bundle: Bundle) -> str | None:
    """The device and version whose predictor was corrected; None for one that was learned alone."""
    transfer = bundle.manifest.transfer
    return transfer.donor.partition(":")[0] if transfer is not None and transfer.donor else None


def lesson(bundle: Bundle) -> str:
    """The source of a predictor's knowledge, as a sentence without its full stop."""
    kernels, donor = counted(sum(kind.entry.rows for kind in bundle.kinds.values()), "kernel"), donor_of(bundle)
    if donor is None:
        return f"Learned from {kernels} of this machine alone"
    return f"The predictor of {donor}, corrected by {kernels} of this machine"
