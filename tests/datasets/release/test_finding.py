"""Releases are found by device, version or path, and listed without reading a table."""

from pathlib import Path

import pytest
from tests.datasets import sample
from tests.datasets.tampering import change_manifest

from opmark.core.errors import ContentError, NothingSelectedError, UnknownNameError
from opmark.datasets.format.manifest import read
from opmark.datasets.release.building import build_from
from opmark.datasets.release.card import card
from opmark.datasets.release.finding import find, names, path_of, summaries


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for version in ("1.9.0", "1.10.0"):
        build_from([sample.contents()], tmp_path / "datasets", version=version)
    return tmp_path / "datasets"


def test_names_are_sorted_by_version_not_by_letter(folder: Path) -> None:
    (folder / ".1.11.0.xyz.tmp").mkdir()
    (folder / sample.DEVICE / "notes").mkdir()
    assert names(folder) == (f"{sample.DEVICE}/1.9.0", f"{sample.DEVICE}/1.10.0")
    assert names(folder / "absent") == ()


def test_a_device_means_its_newest_version(folder: Path) -> None:
    assert find(sample.DEVICE, folder).version == "1.10.0"
    assert find(f"{sample.DEVICE}/1.9.0", folder).version == "1.9.0"
    assert find(str(folder / sample.DEVICE / "1.9.0"), Path("nowhere")).name == f"{sample.DEVICE}/1.9.0"


def test_what_is_not_there_is_refused_with_the_nearest(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as refused:
        find(sample.DEVICE[:-1], folder)
    assert refused.value.hint == f"did you mean {sample.DEVICE!r}?"
    with pytest.raises(ContentError, match=r"not a release: it has no manifest\.json"):
        path_of(str(tmp_path), folder)
    with pytest.raises(NothingSelectedError, match="there is no release yet"):
        find("any", tmp_path / "empty")


def test_summaries_say_what_is_there(folder: Path) -> None:
    old, new = summaries(folder)
    assert (old.version, new.version) == ("1.9.0", "1.10.0")
    assert old.id == new.id
    assert (new.kernels, new.networks, new.targets) == (42, 1, (sample.TARGET.name,))
    assert new.size_bytes > 10_000


@pytest.mark.parametrize(
    "figures", [{"kernels": 1}, {}, [], 3, None, {"kernels": "many", "networks": 1}, {"kernels": [1], "networks": 1}]
)
def test_figures_that_are_none_are_refused(folder: Path, figures: object) -> None:
    path = folder / sample.DEVICE / "1.9.0"
    change_manifest(path, lambda content: content["statistics"].update({sample.TARGET.name: figures}))
    with pytest.raises(ContentError, match=r"1\.9\.0/manifest\.json: statistics: not the figures of a release"):
        summaries(folder)
    with pytest.raises(ContentError, match="not the figures of a release"):
        card(read(path))
