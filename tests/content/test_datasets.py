"""Every release in the repository is sound, complete, in its place and small enough for git."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from opmark.core.checksums import files_without, forget_files
from opmark.datasets.format.manifest import CONFIGURATIONS, IMPORTED, read
from opmark.datasets.release.export import export
from opmark.datasets.release.finding import names
from opmark.datasets.release.release import Release, load
from opmark.datasets.validation.check import ERROR
from opmark.datasets.validation.validate import validate

FOLDER = Path(__file__).resolve().parents[2] / "datasets"
RELEASES = names(FOLDER)
# With its journals: the rows of 87,000 kernels need 53 MB, the looks of nearly three hours 26 MB.
LARGEST_BYTES = 80_000_000

pytestmark = pytest.mark.parametrize("name", RELEASES or [pytest.param("", marks=pytest.mark.skip("no release yet"))])


@cache
def loaded(name: str) -> Release:
    return load(FOLDER / name)


def test_it_is_sound(name: str) -> None:
    assert [finding for finding in validate(FOLDER / name) if finding.level == ERROR] == []


def test_it_lies_where_its_manifest_says(name: str) -> None:
    release = loaded(name)
    assert release.name == name
    published = release.manifest.provenance.kind == IMPORTED
    assert release.manifest.licence == ("MIT" if published else "CC-BY-4.0")
    assert not published or release.manifest.environments[0].checked["source_commit"]


def test_every_target_has_usable_rows(name: str) -> None:
    release = loaded(name)
    for target in release.targets:
        usable = release.kernels[(release.kernels["target"] == target.name) & (release.kernels["latency_hot_ns"] > 0)]
        assert len(usable), target.name


def test_its_card_is_about_it(name: str) -> None:
    release = loaded(name)
    text = (release.path / "README.md").read_text()
    assert release.id in text
    assert all(target.name in text for target in release.targets)


def test_its_tables_and_journals_fit_in_git(name: str) -> None:
    release = loaded(name)
    assert sum(entry.size_bytes for entry in release.manifest.files) < LARGEST_BYTES


def test_load_dataset_finds_every_table(name: str) -> None:
    """In the card, or for the first releases in a file beside it that `export --format huggingface` has made."""
    release = loaded(name)
    configured = release.path / CONFIGURATIONS
    header = yaml.safe_load((release.path / "README.md").read_text().split("---\n")[1])
    if configured.is_file():
        assert "configs" not in header
        assert configured.read_bytes() == export(release, "huggingface")
        header = yaml.safe_load(configured.read_text())
    tables = {entry.name for entry in release.manifest.files if entry.rows}
    assert tables <= {item["data_files"] for item in header["configs"]}
    assert all((release.path / item["data_files"]).is_file() for item in header["configs"])


def test_damage_to_its_manifest_would_show(name: str) -> None:
    """By a checksum of its own, or for the first releases by the list beside the folders of the devices."""
    forget_files()
    read(FOLDER / name)
    assert files_without() == ()
