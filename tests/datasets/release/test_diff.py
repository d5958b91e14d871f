"""What changed between two releases, group by group."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.datasets import sample

from opmark.datasets.release.building import build_from
from opmark.datasets.release.diff import diff


def test_added_removed_changed_and_slower(tmp_path: Path) -> None:
    kernels = sample.kernels(12)
    before = [sample.measurement(kernel) for kernel in kernels[:10]]
    after = [sample.measurement(kernel, flops_per_s=2.5e10) for kernel in kernels[2:11]]
    after.append(sample.without_latency(kernels[0]))
    old = build_from([sample.contents(before)], tmp_path)
    environment = replace(sample.ENVIRONMENT, checked={**sample.ENVIRONMENT.checked, "onnxruntime.version": "1.32"})
    new = build_from([sample.contents(after, [], environment=environment)], tmp_path)
    found = diff(old, new)
    assert not found.same
    assert found.facts == {"onnxruntime.version": ("1.31.0", "1.32")}
    conv, network = found.groups
    assert (conv.kind, conv.added, conv.removed, conv.common) == ("conv", 1, 1, 9)
    assert (conv.status_changed, conv.compared) == (1, 8)
    assert conv.ratio_median == pytest.approx(2.0, rel=0.05)
    assert conv.ratio_p5 is not None
    assert conv.ratio_p95 is not None
    assert conv.ratio_p5 <= conv.ratio_median <= conv.ratio_p95
    assert (network.kind, network.removed, network.compared, network.ratio_median) == ("network", 1, 0, None)


def test_the_same_rows_are_said_to_be_the_same(tmp_path: Path) -> None:
    old, new = (build_from([sample.contents()], tmp_path) for _ in range(2))
    found = diff(old, new)
    assert found.same
    assert all(group.added == group.removed == group.status_changed == 0 for group in found.groups)
    assert [group.ratio_median for group in found.groups] == [1.0, 1.0]
