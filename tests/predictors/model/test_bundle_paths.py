"""Where bundles lie, and which one answers for a target."""

from opmark.core.shipped import shipped_content
from opmark.predictors.model.bundle_paths import REFERENCE_DEVICE, find_bundle


def test_a_shipped_target_without_a_device_is_that_of_the_reference_device() -> None:
    for target in ("onnxruntime-cpu-t1", "torch-eager-t1"):
        found = find_bundle(shipped_content(), target)
        assert found.parents[1].name == REFERENCE_DEVICE
        other = find_bundle(shipped_content(), target, device="amd-25-1-1-2vcpu-l3-32m")
        assert other.parents[1].name == "amd-25-1-1-2vcpu-l3-32m"
