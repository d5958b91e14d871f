"""Rows that became slower or faster, the largest changes first."""

from pathlib import Path

import pytest
from tests.datasets import sample

from opmark.datasets.release.building import build_from
from opmark.datasets.release.changes import row_changes
from opmark.datasets.release.diff import diff
from opmark.studies.release_changes.page import changes_page


def test_common_usable_rows_are_compared_slower_ones_first(tmp_path: Path) -> None:
    kernels = sample.kernels(6)
    before = [sample.measurement(kernel) for kernel in kernels[:5]]
    after = [sample.measurement(kernel, flops_per_s=2.5e10) for kernel in kernels[1:3]]
    after += [sample.measurement(kernels[3]), sample.without_latency(kernels[4]), sample.measurement(kernels[5])]
    old, new = build_from([sample.contents(before, [])], tmp_path), build_from([sample.contents(after, [])], tmp_path)
    found = row_changes(old, new)
    assert len(found) == 3
    assert [round(one.ratio, 1) for one in found] == [2.0, 2.0, 1.0]
    assert found[0].extra_ns == pytest.approx(found[0].old_ns, rel=0.05)
    assert {one.kind for one in found} == {"conv"}
    assert "=" in found[0].name
    page = changes_page(diff(old, new), found)
    assert "What became slower: 2" in page
    assert "What became faster: 0" in page
    assert page.count('scope="row"') == 2 + 1


def test_equal_releases_have_nothing_to_list(tmp_path: Path) -> None:
    old, new = (build_from([sample.contents()], tmp_path) for _ in range(2))
    changes = row_changes(old, new)
    assert all(one.ratio == 1 for one in changes)
    page = changes_page(diff(old, new), changes)
    assert page.count("Nothing.") == 2
