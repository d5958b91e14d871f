"""Fusion verdicts and links in a release: beside the kernels, optional, and checked like them."""

import json
from pathlib import Path

import pytest
from tests.datasets import sample
from tests.datasets.journals import write_journal
from tests.sealing import edit_journal

from opmark.core.errors import ContentError, UnknownNameError, UsageError
from opmark.core.kernels.fusion import FUSED, NOT_FUSED, pair_verdicts
from opmark.core.measurements.lines import line_of
from opmark.core.measurements.records import (
    Done,
    FusionRound,
    FusionTrial,
    Header,
    LinkTrial,
    Overhead,
    Record,
    Session,
    Transfer,
)
from opmark.datasets.format.columns import FUSION, LINKS, TABLES, fusion_of, fusion_row, link_of, link_row
from opmark.datasets.release.building import build, merge
from opmark.datasets.release.card import card
from opmark.datasets.release.export import export
from opmark.datasets.release.release import Release, load
from opmark.datasets.validation.check import ERROR
from opmark.datasets.validation.validate import validate

TARGET = sample.TARGET.name


def fusion_journal(path: Path, *, block_ns: float = 30_500.0, rounds: int = 6) -> Path:
    """conv+relu at three shapes fused, conv+add skipped."""
    records: list[Record] = [Overhead(target=TARGET, process=0, ns=2000.0)]
    for shape in ("1x8", "2x8", "4x8"):
        common = {"trial": shape, "target": TARGET, "first": "conv", "second": "relu"}
        records.append(FusionTrial(pair="conv+relu", shape=shape, **common))  # type: ignore[arg-type]
        records += [
            FusionRound(
                trial=shape,
                process=process % 2,
                first_ns=(30_000.0 + process, 40_000.0),
                second_ns=(12_000.0, 12_500.0),
                block_ns=(block_ns, block_ns),
                clean=("10", "11", "11"),
                white_box=FUSED,
                kernels="FusedConv(conv relu)",
                inserted_saved=-1,
            )
            for process in range(rounds)
        ]
        records.append(Done(trial=shape, status="ok"))
    records.append(FusionTrial(trial="s", target=TARGET, pair="conv+add", first="conv", second="add", shape="1x8"))
    records.append(Done(trial="s", status="skipped", reason="no such kernel"))
    return written(path, "fusion", records)


def link_journal(path: Path) -> Path:
    """Cores with a wake-up of 10 µs; to a GPU twice as fast from pinned memory."""
    records: list[Record] = []
    links = (
        ("core1", "core0", "shared", 10.0),
        ("host", "cuda:0", "pinned", 20.0),
        ("host", "cuda:0", "pageable", 5.0),
    )
    for source, destination, memory, rate in links:
        key = f"{source}{destination}{memory}"
        records.append(LinkTrial(trial=key, source=source, destination=destination, memory=memory))
        if memory == "shared":
            records.append(Transfer(trial=key, size_bytes=0, ns=(10_000.0, 10_000.0), clean="11"))
        records += [
            Transfer(trial=key, size_bytes=size, ns=(500 + size / rate,) * 3, clean="111")
            for size in (64, 96, 128, 1 << 20, 3 << 19, 1 << 21)
        ]
        records.append(Done(trial=key, status="ok"))
    return written(path, "links", records)


def written(path: Path, suite: str, records: list[Record]) -> Path:
    start: list[Record] = [
        Header(suite=suite, suite_id=suite, quality="full"),
        Session(environment=sample.ENVIRONMENT, targets=(sample.TARGET,) if suite == "fusion" else ()),
    ]
    path.write_text("".join(map(line_of, [*start, *records])))
    return path


@pytest.fixture
def release(tmp_path: Path) -> Release:
    journals = [
        write_journal(tmp_path / "kernels.jsonl", sample.kernels(3)),
        fusion_journal(tmp_path / "fusion.jsonl"),
        link_journal(tmp_path / "links.jsonl"),
    ]
    return build(journals, tmp_path / "datasets")


def test_a_release_holds_verdicts_and_links_in_its_manifest(release: Release) -> None:
    names = {entry.name: entry.rows for entry in release.manifest.files}
    assert (names["fusion.parquet"], names["links.parquet"]) == (4, 3)
    rows = release.fusions(TARGET)
    (verdict,) = pair_verdicts(rows)
    assert (verdict.pair, verdict.white_box, verdict.black_box, verdict.shapes) == ("conv+relu", FUSED, FUSED, 3)
    assert rows[-1].inserted_saved == -1
    assert [row.status for row in rows] == ["skipped", "ok", "ok", "ok"]
    figures = release.manifest.statistics[TARGET]["fusion"]
    assert (figures["pairs"], figures["differ"], figures["white_box"][FUSED]) == (1, 0, 1)
    assert not [finding for finding in validate(release.path) if finding.level == ERROR]
    assert load(release.path).id == release.id


def test_a_cluster_gets_its_link_from_a_release(release: Release) -> None:
    link = release.cluster_link("core1", "core0", rename={"core1": "a", "core0": "b"})
    assert (link.source, link.destination, link.latency_ns) == ("a", "b", 10_000)
    assert link.points[0] == (64, 10_506)
    assert release.cluster_link("host", "cuda:0").bandwidth_bytes_per_s == pytest.approx(20e9)
    assert release.cluster_link("host", "cuda:0", memory="pageable").bandwidth_bytes_per_s == pytest.approx(5e9)
    with pytest.raises(UnknownNameError, match="core0 to core1"):
        release.cluster_link("core0", "core1")


def test_the_card_tells_of_both(release: Release) -> None:
    text = (release.path / "README.md").read_text()
    assert "| pairs of operators that become one kernel, by the runtime's graph | 1 of 1 |" in text
    assert "| host | cuda:0 | pinned |" in text
    assert "`links.parquet`" in text
    assert text == card(release.manifest, release.links)


def test_rows_become_measurements_and_back(release: Release) -> None:
    for row in release.fusions(TARGET):
        assert fusion_of(fusion_row(row)) == row
    for link in release.links:
        assert link_of(link_row(link)) == link


def test_a_release_without_them_has_none(tmp_path: Path) -> None:
    plain = build([write_journal(tmp_path / "k.jsonl", sample.kernels(2))], tmp_path / "datasets")
    assert plain.links == plain.fusions(TARGET) == ()
    assert {entry.name for entry in plain.manifest.files} == {
        "kernels.parquet",
        "networks.parquet",
        "README.md",
        "croissant.json",
    }
    assert "fusion" not in plain.manifest.statistics[TARGET]
    with pytest.raises(UsageError, match="has no links"):
        export(plain, "csv", table="links")


def test_what_was_measured_twice_keeps_the_better(release: Release, tmp_path: Path) -> None:
    better = fusion_journal(tmp_path / "again.jsonl", block_ns=39_900.0, rounds=10)
    merged = merge([release.path, better], tmp_path / "datasets")
    rows = [row for row in merged.fusions(TARGET) if row.status == "ok"]
    assert {row.samples for row in rows} == {60}
    assert {row.black_box for row in rows} == {NOT_FUSED}
    assert merged.links == release.links


def test_they_are_exported(release: Release) -> None:
    assert b"conv+relu" in export(release, "csv", table="fusion", target=TARGET)
    assert b"pageable" in export(release, "markdown", table="links")
    assert {FUSION.name, LINKS.name} < set(TABLES)


def test_a_release_of_links_alone_can_be(tmp_path: Path) -> None:
    alone = build([link_journal(tmp_path / "links.jsonl")], tmp_path / "datasets")
    assert len(alone.links) == 3
    assert len(alone.kernels) == 0


def test_a_value_that_lies_is_refused(tmp_path: Path) -> None:
    path = fusion_journal(tmp_path / "fusion.jsonl")
    edit_journal(path, lambda line: line.replace(json.dumps(TARGET), '"other-t1"'))
    with pytest.raises(ContentError, match=r"'other-t1' is not in manifest\.json"):
        build([path], tmp_path / "datasets")
