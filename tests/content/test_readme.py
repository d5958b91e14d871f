"""The figures of the README are those of the newest release, and the script that writes them reads what is printed."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from opmark.datasets.format import manifest
from opmark.datasets.release.finding import names

ROOT = Path(__file__).resolve().parents[2]
RELEASES = names(ROOT / "datasets")
HOW = "run docs/state_figures.py: its first lines say how"

pytestmark = pytest.mark.skipif(not RELEASES, reason="no release yet")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("state_figures", ROOT / "docs" / "state_figures.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_what_was_measured_is_what_the_release_says(script: ModuleType) -> None:
    release = manifest.read(ROOT / "datasets" / RELEASES[-1])
    text = (ROOT / "README.md").read_text()
    assert script.BEGIN in text
    stated = text.partition(script.BEGIN)[2].partition(script.END)[0]
    assert f"| {release.device} {release.version} |" in stated, HOW
    for name, cells in script.measured(release):
        assert f"| {name} | {' | '.join(cells)} |" in stated, HOW


def test_scores_become_rows(script: ModuleType) -> None:
    release = manifest.read(ROOT / "datasets" / RELEASES[-1])
    values = {"acc10": 0.9125, "median": 0.0333, "coverage90": 0.85}
    scores = [
        {"target": target.name, "estimator": estimator, "split": split, "metric": metric, "value": value, "n": 34}
        for target in release.targets
        for estimator in ("roofline", "lightgbm")
        for split in ("networks-unseen", "shape-group")
        for metric, value in values.items()
    ]
    lines = script.table(release, scores).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert any(line.startswith("| networks of unseen families within ±10 % | 91 % of 34 |") for line in lines)
    assert sum(line.startswith("| their median error | 3.3 % |") for line in lines) == 2
    assert any(line.startswith("| 90 % intervals hold, networks and kernels | 85 %, 85 % |") for line in lines)
