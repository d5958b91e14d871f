"""One campaign on many machines: shards measured apart become the release that a single run would."""

import json
from pathlib import Path

import pytest
from tests.sealing import sealed

from opmark.bench.run.runner import run
from opmark.bench.suite.suite import KindSpec, Networks, Suite
from opmark.core.errors import ContentError
from opmark.core.measurements.journal import read_journal
from opmark.datasets.release.building import build, merge
from opmark.datasets.release.release import Release

SUITE = Suite(
    name="campaign",
    targets=("null-a-t1", "null-b-t1"),
    quality="quick",
    kinds={"gemm": KindSpec(count=24), "pool": KindSpec(count=16)},
    networks=Networks(training=("light-squeezenet",)),
)
_SHARDS = 3


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """The journal of a single run, and those of three shards."""
    folder = tmp_path_factory.mktemp("campaign")
    whole = folder / "whole.jsonl"
    run(SUITE, journal=whole)
    parts = [folder / f"part-{index}.jsonl" for index in range(_SHARDS)]
    for index, part in enumerate(parts):
        run(SUITE, journal=part, shard=(index, _SHARDS))
    return whole, parts


def rows(release: Release) -> dict[tuple[str, ...], float]:
    """Latency by everything that says what was measured."""
    kernels = {
        (row.target, row.kind, row.parameters, row.status, str(row.flops)): float(row.latency_hot_ns)
        for row in release.kernels.itertuples()
    }
    return kernels | {
        (row.target, row.network, row.graph_id, row.role): float(row.latency_ns)
        for row in release.networks.itertuples()
    }


def test_nothing_is_measured_twice_and_nothing_lost(journals: tuple[Path, list[Path]]) -> None:
    whole, parts = journals
    measured = [read_journal(part).measured for part in parts]
    assert all(measured)
    assert frozenset().union(*measured) == read_journal(whole).measured
    assert sum(map(len, measured)) == len(read_journal(whole).measured)


def test_merged_shards_are_the_release_of_a_single_run(journals: tuple[Path, list[Path]], tmp_path: Path) -> None:
    whole, parts = journals
    single = rows(build([whole], tmp_path / "single"))
    merged = merge(parts, tmp_path / "merged")
    turned = merge(parts[::-1], tmp_path / "turned")
    assert merged.id == turned.id
    together = rows(merged)
    assert set(together) == set(single)
    # The made-up clock is noisy too, so that only the label, not the samples, is the same.
    assert all(together[key] == pytest.approx(single[key], rel=0.05) for key in single)


def test_a_shard_of_another_machine_is_refused(journals: tuple[Path, list[Path]], tmp_path: Path) -> None:
    _, parts = journals
    other = tmp_path / "other.jsonl"
    lines = [json.loads(line) for line in parts[1].read_text().splitlines()]
    for line in lines:
        if line["type"] == "session":
            line["environment"]["checked"]["cpu"] = "another"
    other.write_text("".join(map(sealed, lines)))
    with pytest.raises(ContentError, match="environment differs"):
        merge([parts[0], other], tmp_path / "release")
    for line in lines:
        if line["type"] == "session":
            line["environment"] = json.loads(parts[0].read_text().splitlines()[1])["environment"]
        if line["type"] == "block":
            line["sentinels"] = {name: [1.1 * ns for ns in found] for name, found in line["sentinels"].items()}
    other.write_text("".join(map(sealed, lines)))
    with pytest.raises(ContentError, match="sentinels differ"):
        merge([parts[0], other], tmp_path / "release")
    assert not (tmp_path / "release").exists()
