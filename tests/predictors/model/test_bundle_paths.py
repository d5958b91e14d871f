"""Where bundles lie, and which one answers for a target."""

import shutil
from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.core.shipped import shipped_content
from opmark.core.workspace import Workspace, version_key
from opmark.predictors.model.bundle_paths import REFERENCE_DEVICE, find_bundle, path_of, stored_bundles
from opmark.predictors.model.manifest import FILE


def test_a_shipped_target_without_a_device_is_that_of_the_reference_device() -> None:
    for target in ("onnxruntime-cpu-t1", "torch-eager-t1"):
        found = find_bundle(shipped_content(), target)
        assert found.parents[1].name == REFERENCE_DEVICE
        other = find_bundle(shipped_content(), target, device="amd-25-1-1-2vcpu-l3-32m")
        assert other.parents[1].name == "amd-25-1-1-2vcpu-l3-32m"


def test_a_copy_of_what_is_shipped_answers_alike_until_others_join(tmp_path: Path) -> None:
    target = "onnxruntime-cpu-t1"
    for one in stored_bundles(shipped_content()):
        if one.target == target:
            copy = tmp_path / "predictors" / one.name
            copy.mkdir(parents=True)
            shutil.copy(one.path / FILE, copy)
    copied = Workspace(tmp_path)
    assert find_bundle(copied, target).parents[1].name == REFERENCE_DEVICE
    own = tmp_path / "predictors" / "acme-1" / "1.0.0" / target
    own.mkdir(parents=True)
    shutil.copy(find_bundle(copied, target) / FILE, own)
    final = [one for one in stored_bundles(shipped_content()) if version_key(one.version) >= version_key("1.0.0")]
    devices = {"acme-1", *(one.device for one in final if one.target == target)}
    with pytest.raises(ContentError, match=f"predictors for {len(devices)} devices: {', '.join(sorted(devices))}"):
        find_bundle(copied, target)


def test_a_full_name_that_a_workspace_lacks_is_that_of_what_is_shipped(tmp_path: Path) -> None:
    empty, one = Workspace(tmp_path), stored_bundles(shipped_content())[0]
    assert path_of(empty, one.name) == one.path
    with pytest.raises(ContentError, match="no predictor of"):
        path_of(empty, f"{one.device}/{one.target}")
    own = tmp_path / "predictors" / one.name
    shutil.copytree(one.path, own)
    assert path_of(empty, one.name) == own
