"""The job of a network: types that cannot run it are left out by name, with the kernels that nothing predicts."""

from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.job import job_of

WORKSPACE = Workspace(Path())
REASON = "no predictor for kinds attention, conv on {}"


class Lacking(Sources):
    """Sources in which some device types have no predictor for two kinds of kernels."""

    lacks: frozenset[str] = frozenset()

    def costs(self, target, table):
        if target.partition("/")[0] in self.lacks:
            raise ContentError(REASON.format(target))
        return super().costs(target, table)


def lacking(*names):
    sources = Lacking(workspace=WORKSPACE)
    sources.lacks = frozenset(names)
    return sources


def test_a_type_without_predictors_is_left_out_with_the_kinds_that_it_lacks():
    catalogue = load_catalogue(WORKSPACE.leaderboards, "cloud-gpus")
    job = job_of("random-cells#1", catalogue, lacking("nvidia-t4"))
    assert job.catalogue.types == tuple(kind for kind in catalogue.types if kind != "t4")
    assert list(job.left_out) == ["t4"]
    assert "kinds attention, conv" in job.left_out["t4"]


def test_a_network_that_no_type_can_run_is_refused_with_every_reason():
    catalogue = load_catalogue(WORKSPACE.leaderboards, "cloud-gpus").only(["t4", "p100"])
    with pytest.raises(ContentError, match="no device type of cloud-gpus can run random-cells#1") as raised:
        job_of("random-cells#1", catalogue, lacking("nvidia-t4", "nvidia-p100"))
    for kind in ("t4", "p100"):
        assert f"{kind}: {REASON.format(f'nvidia-{kind}')[:40]}" in raised.value.message
