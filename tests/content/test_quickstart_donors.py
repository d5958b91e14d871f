"""The networks that judge a quickstart taught nothing to the predictors that it corrects; copies of these are whole."""

from pathlib import Path

import numpy as np
import pytest

from opmark.bench.suite.suite import find_suite, load_suite
from opmark.core.measurements.measurement import HELD_OUT
from opmark.datasets.release.finding import find
from opmark.predictors.inputs.features import features
from opmark.predictors.model.adapted_learner import restored
from opmark.predictors.transfer.shipped_donors import shipped_donors

ROOT = Path(__file__).parents[2]
DEVICE = "amd-26-2-1-2vcpu-l3-32m/1.0.0"
SUITE = load_suite(find_suite("quickstart"))


@pytest.mark.parametrize("target", SUITE.targets)
def test_unseen_networks_are_held_out_in_every_donor_s_release(target: str) -> None:
    unseen = {network.model for network in SUITE.networks.of(HELD_OUT)}
    assert len(unseen) == 7
    donors = shipped_donors(target)
    assert donors
    for donor in donors:
        origin = donor.model.bundle.manifest.origin
        release = find(f"{origin.device}/{origin.version}", ROOT / "datasets")
        roles = {row.role for row in release.network_measurements(target) if row.network.partition("@")[0] in unseen}
        assert roles == {HELD_OUT}, donor.name


@pytest.mark.parametrize("target", SUITE.targets)
def test_a_copy_of_a_donor_predicts_as_the_donor(target: str) -> None:
    """A corrected predictor holds its donor's text; older donors write some of it otherwise than new ones."""
    kernels = [row.kernel for row in find(DEVICE, ROOT / "datasets").measurements(target)][::50]
    for donor in shipped_donors(target):
        bundle = donor.model.bundle
        for kind in {kernel.kind for kernel in kernels} & bundle.kinds.keys():
            own = features([kernel for kernel in kernels if kernel.kind == kind], hardware=bundle.manifest.hardware)
            fitted = bundle.kinds[kind].fitted
            copied = restored(bundle.manifest.estimator, fitted.files())
            assert np.array_equal(copied.predict(own).hot_ns, fitted.predict(own).hot_ns), f"{donor.name}: {kind}"
