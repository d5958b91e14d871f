"""The READMEs: their figures are those of the newest release, and both languages say the same."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from opmark.core.workspace import version_key
from opmark.datasets.format import manifest
from opmark.datasets.release.finding import names

ROOT = Path(__file__).resolve().parents[2]
OWN_LICENCE = "CC-BY-4.0"
# Imported releases keep their own licence; the READMEs state what was measured here.
OWN = [name for name in names(ROOT / "datasets") if manifest.read(ROOT / "datasets" / name).licence == OWN_LICENCE]
# Preliminary releases (0.x) have no figures in the README; those of a GPU have them in the guide.
RELEASES = [
    name
    for name in OWN
    if version_key(name.rpartition("/")[2]) >= version_key("1.0.0")
    and any(target.backend == "onnxruntime" for target in manifest.read(ROOT / "datasets" / name).targets)
]
HOW = "run docs/state_figures.py: its first lines say how"

pytestmark = pytest.mark.skipif(not RELEASES, reason="no release yet")


def loaded(name: str) -> ModuleType:
    """A script of the documentation as a module. The scripts there import one another by name."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("state_figures")


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


def headings(text: str) -> list[str]:
    """The level of each heading outside code."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.findall(r"^(#+) ", prose, flags=re.MULTILINE)


def commands(text: str) -> list[str]:
    """Every command of the code blocks, without its comment."""
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


def figures(text: str) -> list[str]:
    """Every number of the tables, in order."""
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|-")]
    return [number for row in rows for number in re.findall(r"[-+]?\d[\d.,]*", row)]


def links(text: str) -> list[str]:
    """Every target of a link or picture, in order, without the link from each README to its twin."""
    found = re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", text)
    return [one for pair in found for one in pair if one and not one.startswith("README")]


@pytest.mark.parametrize("part", [headings, commands, figures, links])
def test_the_chinese_readme_keeps_in_step(part: Callable[[str], list[str]]) -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
    assert part(english)
    assert part(chinese) == part(english)


def test_a_figure_changed_in_one_language_only_would_be_noticed() -> None:
    english = (ROOT / "README.md").read_text(encoding="utf-8")
    table = english.partition("<!-- figures: begin -->")[2]
    number = figures(table)[-1]
    assert figures(english.replace(number, "12.3456")) != figures(english)


def test_the_demo_table_is_translated_whole(script: ModuleType) -> None:
    chinese = (ROOT / "README.zh.md").read_text(encoding="utf-8")
    english = (ROOT / "README.md").read_text(encoding="utf-8")
    for begin, end in ((script.BEGIN, script.END), ("<!-- demo: begin -->", "<!-- demo: end -->")):
        shown = [text.partition(begin)[2].partition(end)[0] for text in (english, chinese)]
        assert loaded("readme_translation").translated(shown[0]) == shown[1]
