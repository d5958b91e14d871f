"""The job of a network: types that cannot run it are left out by name, with the kernels that nothing predicts."""

from pathlib import Path

import pytest

from opmark.core.errors import ContentError, UnknownNameError
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.job import job_of
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel

WORKSPACE = Workspace(Path())
REASON = "no predictor for kinds attention, conv on {}"


class Lacking(Sources):
    """Sources in which some device types have no predictor for two kinds of kernels."""

    lacks: frozenset[str] = frozenset()

    def costs(self, target, table):
        if target.partition("/")[0] in self.lacks:
            raise ContentError(REASON.format(target))
        return super().costs(target, table)


class WithoutConvolutions(Sources):
    """Sources whose torch predictors know no convolutions."""

    def costs(self, target, table):
        model, words = super().costs(target, table)
        if "torch" not in table.bundle:
            return model, words
        kinds = {name: one for name, one in model.bundle.kinds.items() if name != "conv"}
        return CostModel(Bundle(manifest=model.bundle.manifest, kinds=kinds), missing=self.missing), words


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


def test_the_kernels_that_a_predictor_lacks_are_named_one_by_one():
    catalogue = load_catalogue(WORKSPACE.leaderboards, "measured-cores")
    job = job_of("mobilenet-v1", catalogue, WithoutConvolutions(workspace=WORKSPACE, missing="error"))
    assert list(job.left_out) == ["torch-core"]
    reason = job.left_out["torch-core"]
    assert "no predictor for kind conv on" in reason
    # mobilenet-v1 has a first convolution with 3 input channels, and pointwise ones with 1 x 1 filters
    assert reason.count("conv(") > 10
    assert "channels_in=3" in reason


def test_a_network_that_no_type_can_run_is_refused_with_every_reason():
    catalogue = load_catalogue(WORKSPACE.leaderboards, "cloud-gpus").only(["t4", "p100"])
    with pytest.raises(ContentError, match="no device type can run random-cells#1") as raised:
        job_of("random-cells#1", catalogue, lacking("nvidia-t4", "nvidia-p100"))
    for kind in ("t4", "p100"):
        assert f"{kind}: {REASON.format(f'nvidia-{kind}')[:40]}" in raised.value.message


def test_a_reason_that_all_types_share_is_said_once():
    catalogue = load_catalogue(WORKSPACE.leaderboards, "cloud-gpus")
    with pytest.raises(ContentError) as raised:
        job_of("missing.onnx", catalogue, Sources(workspace=WORKSPACE))
    assert raised.value.message.count("missing.onnx") <= 2
    assert "t4" not in raised.value.message


def test_an_unknown_network_is_one_sentence_with_the_nearest_name():
    catalogue = load_catalogue(WORKSPACE.leaderboards, "cloud-gpus")
    with pytest.raises(UnknownNameError, match="no network is called 'resnet-5000'") as raised:
        job_of("resnet-5000", catalogue, Sources(workspace=WORKSPACE))
    assert "resnet" in raised.value.hint


def test_a_capture_is_told_before_it_begins_and_not_again(tmp_path):
    for room in ("leaderboards", "predictors"):
        (tmp_path / room).symlink_to((WORKSPACE.root / room).resolve())
    sources = Sources(workspace=Workspace(tmp_path))
    catalogue = load_catalogue(WORKSPACE.leaderboards, "cloud-gpus")
    steps = []
    for _ in range(2):
        job_of("plain-tiny", catalogue, sources, batch=3, tell=steps.append)
    assert (
        steps[0] == "capturing the kernels of plain-tiny on a100, 1 of 4 device types; the next run finds them stored"
    )
    assert sum("capturing" in step for step in steps) == 1
    assert "predicting the kernels of plain-tiny on t4, 3 of 4 device types" in steps
    assert steps[-1] == "cutting plain-tiny into units"
    # this one came with OpMark
    assert not sources.must_capture("resnet-50", catalogue.tables["t4"], {})
