"""Shards and releases of like machines merge; unlike ones are told apart by fact or by sentinel."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.datasets import sample
from tests.datasets.journals import write_journal

from opmark.core.errors import ContentError
from opmark.datasets.release.building import build, merge


def test_shards_merge_into_what_one_run_would_have_given(tmp_path: Path) -> None:
    kernels = sample.kernels(20)
    shards = [write_journal(tmp_path / f"{part}.jsonl", kernels[part::4], networks=["tiny"]) for part in range(4)]
    merged = merge(shards, tmp_path / "merged")
    assert sorted(merged.kernels["kernel_key"]) == sorted(kernel.key for kernel in kernels)
    assert len(merged.networks) == 1
    assert merged.id == build(list(reversed(shards)), tmp_path / "built").id


def test_releases_merge_and_merging_again_changes_nothing(tmp_path: Path) -> None:
    kernels = sample.kernels(9)
    folder = tmp_path / "datasets"
    first = build([write_journal(tmp_path / "a.jsonl", kernels[:6])], folder)
    second = build([write_journal(tmp_path / "b.jsonl", kernels[3:], slower=1.02)], folder)
    merged = merge([first.path, second.path], folder)
    assert merged.version == "1.2.0"
    assert len(merged.kernels) == 9
    assert len(merged.tables["kernel_repeats"]) == 3
    again = merge([merged.path, tmp_path / "a.jsonl", first.path], folder)
    assert again.id == merged.id
    assert {source.name for source in again.manifest.sources} == {"a.jsonl", "b.jsonl"}


def test_unlike_hosts_are_refused_naming_the_facts(tmp_path: Path) -> None:
    other = replace(sample.ENVIRONMENT, checked={**sample.ENVIRONMENT.checked, "last_level_bytes": 1 << 20})
    first = write_journal(tmp_path / "a.jsonl", sample.kernels(2))
    second = write_journal(tmp_path / "b.jsonl", sample.kernels(2), environment=other)
    with pytest.raises(ContentError, match="last_level_bytes is 1048576, not 33554432") as refused:
        merge([first, second], tmp_path / "datasets")
    assert refused.value.where == str(second)
    assert not (tmp_path / "datasets").exists()


def test_hosts_whose_sentinels_differ_are_refused(tmp_path: Path) -> None:
    near, far = (
        write_journal(tmp_path / f"{ns:.0f}.jsonl", sample.kernels(2), sentinel_ns=ns) for ns in (1020.0, 1040.0)
    )
    here = write_journal(tmp_path / "here.jsonl", sample.kernels(3))
    assert len(merge([here, near], tmp_path / "datasets").kernels) == 3
    with pytest.raises(ContentError, match=r"by more than 3%: onnxruntime-cpu-t1/compute \+4\.0%"):
        merge([here, far], tmp_path / "datasets")


def test_a_damaged_journal_is_refused_by_line(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "a.jsonl", sample.kernels(1))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:3], "{broken\n", *lines[3:]]))
    with pytest.raises(ContentError, match=r"a\.jsonl:4: damaged"):
        merge([path], tmp_path / "datasets")
