"""The networks that judge a quickstart taught nothing to the predictors that it corrects."""

from pathlib import Path

import pytest

from opmark.bench.suite.suite import find_suite, load_suite
from opmark.core.measurements.measurement import HELD_OUT
from opmark.datasets.release.finding import find
from opmark.predictors.transfer.shipped_donors import shipped_donors

ROOT = Path(__file__).parents[2]
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
