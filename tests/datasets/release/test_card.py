"""The card's figures are those of the rows."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.datasets import sample
from tests.datasets.journals import write_journal

from opmark.core.measurements.journal import read_journal
from opmark.datasets.format.columns import KERNELS, NETWORKS
from opmark.datasets.format.manifest import common_facts, conflicts, read
from opmark.datasets.release.building import build, build_from
from opmark.datasets.release.card import card, counted, format_rate, machine, quantities
from opmark.datasets.release.croissant import croissant
from opmark.datasets.release.release import Release
from opmark.datasets.release.statistics import statistics
from opmark.datasets.release.writing import today


@pytest.fixture
def release(tmp_path: Path) -> Release:
    kernels = sample.kernels(6)
    slow = [sample.measurement(kernel, flops_per_s=4.9e10, samples=30) for kernel in kernels]
    return build_from([sample.contents(), sample.contents(slow, [], name="b.jsonl")], tmp_path)


def test_the_card_is_the_one_its_manifest_gives(release: Release) -> None:
    text = (release.path / "README.md").read_text()
    assert text == card(read(release.path))
    assert f"`{release.id}`" in text
    assert "{{" not in text
    assert "None" not in text


def test_figures_are_those_of_the_rows(release: Release) -> None:
    text = (release.path / "README.md").read_text()
    assert "Latencies of 42 kernels and 1 whole network" in text
    assert "42 kernels: 40 ok, 1 skipped, 1 failed." in text
    hot_ns = release.kernels["latency_hot_ns"]
    figures = release.manifest.statistics[sample.TARGET.name]
    assert figures["kinds"]["conv"]["hot_ns"]["median"] == pytest.approx(hot_ns.median())
    assert figures["kinds"]["conv"]["hot_ns"]["max"] == hot_ns.max()
    assert figures["retest"]["rows"] == 6
    assert 0.001 < figures["retest"]["median"] < 0.021
    assert "50.0 GFLOP/s" in text
    assert re.search(r"kernels measured again, difference: median over 6 \| [0-9.]+% \|", text)


def test_the_card_says_what_a_training_step_has_and_how_much_is_doubtful(tmp_path: Path) -> None:
    kernels = [*sample.kernels(4), *sample.training_kernels()]
    rows = [sample.measurement(kernel) for kernel in kernels]
    rows[0] = sample.measurement(kernels[0], status="low_quality", reason="noisy")
    text = (build_from([sample.contents(rows)], tmp_path).path / "README.md").read_text()
    assert "| float32 | 7 | 4 | 2 | 1 |" in text
    assert "1 low_quality" in text
    assert "| networks measured again, difference: median | not measured |\n" in text
    assert "time inside samples" not in text


def test_a_release_of_a_journal_says_what_sampling_took(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.jsonl", sample.kernels(3), networks=["net"])
    release = build([journal], tmp_path / "datasets")
    spent = sum(sum(block.ns) * block.calls for blocks in read_journal(journal).blocks.values() for block in blocks)
    figures = release.manifest.statistics[sample.TARGET.name]
    assert figures["sampled_s"] == pytest.approx(spent / 1e9, abs=0.06)
    assert "| time inside samples | " in (release.path / "README.md").read_text()


def test_the_card_of_an_earlier_release_says_less(release: Release) -> None:
    later = {"phases", "standard_error", "network_standard_error", "noise_floor", "network_noise_floor", "sampled_s"}
    earlier = {
        target: {name: value for name, value in figures.items() if name not in later}
        for target, figures in release.manifest.statistics.items()
    }
    text = card(replace(release.manifest, statistics=earlier))
    assert "standard error of kernels" not in text
    assert "| call overhead, median |" in text


def test_a_release_knows_its_day(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    release = build_from([sample.contents()], tmp_path)
    assert today() == release.manifest.published == "2023-11-14"
    assert "Published 2023-11-14." in (release.path / "README.md").read_text()
    assert croissant(release.manifest)["datePublished"] == "2023-11-14"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert today() > "2026"
    assert "datePublished" not in croissant(replace(release.manifest, published=""))
    assert "Published" not in card(replace(release.manifest, published=""))


def test_every_column_is_explained(release: Release) -> None:
    text = (release.path / "README.md").read_text()
    assert all(f"`{column.name}`" in text for table in (KERNELS, NETWORKS) for column in table.columns)


def test_statistics_of_a_target_without_kernels_are_empty() -> None:
    figures = statistics(sample.contents([]))[sample.TARGET.name]
    assert (figures["kernels"], figures["noise"], figures["retest"], figures["kinds"]) == (0, None, None, {})
    assert (figures["networks"], figures["families"]) == (1, 1)


def test_counts_and_rates_read_like_words() -> None:
    assert counted(1, "kernel") == "1 kernel"
    assert counted(6000, "kernel") == "6,000 kernels"
    assert counted(2, "family", "families") == "2 families"
    assert format_rate(5.02e10, "flops_per_s") == "50.2 GFLOP/s"
    assert format_rate(8e9, "hot_bytes_per_s") == "8.00 GB/s"
    assert format_rate(12.0, "hot_bytes_per_s") == "12.0 B/s"


def test_quantities_are_those_of_one_target(release: Release) -> None:
    found = dict(quantities(release.manifest, sample.TARGET.name))
    figures = release.manifest.statistics[sample.TARGET.name]
    assert found["kernels measured again, difference: median over 6"] == f"{figures['retest']['median']:.1%}"
    assert found["variation between processes: median over 40"] == f"{figures['noise']['median']:.1%}"


def test_a_machine_is_told_as_far_as_it_is_known() -> None:
    facts = {"cpu": "Acme", "processors": 1, "hypervisor": "none", "last_level_bytes": 32 << 20}
    assert machine(facts) == "Acme, 1 processor, 32.0 MiB of last-level cache"
    assert machine({}) == ""


def test_facts_of_one_machine() -> None:
    assert conflicts(sample.ENVIRONMENT, sample.ENVIRONMENT) == {}
    assert common_facts([sample.ENVIRONMENT])["cpu"] == "Acme"


def test_each_table_is_a_configuration_that_load_dataset_finds(release: Release) -> None:
    """`datasets.load_dataset(folder, name)` reads one Parquet file per configuration of the card's header."""
    import pyarrow.parquet
    import yaml

    header = yaml.safe_load((release.path / "README.md").read_text().split("---\n")[1])
    configurations = header["configs"]
    files = {path.name for path in release.path.glob("*.parquet")}
    assert {item["data_files"] for item in configurations} == files
    assert [item["config_name"] for item in configurations if item.get("default")] == ["kernels"]
    for item in configurations:
        assert item["data_files"] == f"{item['config_name']}.parquet"
        assert pyarrow.parquet.read_schema(release.path / item["data_files"]).names
    assert header["license"] == "cc-by-4.0"


def test_a_licence_cannot_add_keys_to_the_header(release: Release) -> None:
    import yaml

    text = card(replace(release.manifest, licence="mit\nconfigs: evil\n---\n<script>"))
    header = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(header["configs"], list)
    assert "evil" in header["license"]
