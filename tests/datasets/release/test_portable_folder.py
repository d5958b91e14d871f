"""A folder for other programs is complete wherever it lies, and replaces nothing."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from tests.datasets import sample

from opmark.core.errors import UsageError
from opmark.datasets.release.building import build_from
from opmark.datasets.release.portable_folder import write_portable_folder
from opmark.datasets.release.release import Release


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return build_from([sample.contents()], tmp_path / "datasets")


@pytest.mark.filterwarnings("ignore")
def test_a_portable_folder_needs_nothing_beside_it(release: Release, tmp_path: Path) -> None:
    write_portable_folder(release, tmp_path / "made")
    moved = (tmp_path / "made").rename(tmp_path / "moved")
    shutil.rmtree(release.path)
    document = json.loads((moved / "croissant.json").read_text())
    assert all((moved / item["contentUrl"]).is_file() for item in document["distribution"])
    header = yaml.safe_load((moved / "README.md").read_text().split("---\n")[1])
    assert {item["data_files"] for item in header["configs"]} == {path.name for path in moved.glob("*.parquet")}
    mlcroissant = pytest.importorskip("mlcroissant")
    assert len(list(mlcroissant.Dataset(jsonld=moved / "croissant.json").records("networks"))) == 1


def test_a_portable_folder_replaces_nothing(release: Release, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    for path in (tmp_path / "full", tmp_path / "full" / "mine", release.path):
        with pytest.raises(UsageError, match="not an empty folder"):
            write_portable_folder(release, path)
