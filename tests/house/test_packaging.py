"""Layers hold, and what is built contains what it should."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from opmark.core.workspace import Workspace
from opmark.predictors.model.bundle_paths import stored_bundles

ROOT = Path(__file__).resolve().parents[2]
DEVICES = ROOT / "leaderboards" / "devices"


def test_rooms_import_downwards_only() -> None:
    program = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    finished = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.slow
def test_the_wheel_holds_code_templates_and_content(tmp_path: Path) -> None:
    for module in ("hatchling", "build"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (wheel,) = tmp_path.glob("opmark-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "opmark").rglob("*")
        if path.is_file() and path.suffix in {".py", ".jinja", ".css", ".js", ".typed"} and "content" not in path.parts
    }
    assert wanted <= names
    suites = {f"opmark/content/bench/suites/{path.name}" for path in (ROOT / "bench" / "suites").glob("*.yaml")}
    assert suites <= names
    here = Workspace(ROOT)
    newest = {(one.device, one.target): one for one in stored_bundles(here)}
    bundles = {path for one in newest.values() for path in one.path.iterdir()}
    assert len(bundles) > 100
    assert {f"opmark/content/{path.relative_to(ROOT).as_posix()}" for path in bundles} <= names
    # Those that problems were made of are wanted again; other old ones are not.
    stored = {one.name for one in stored_bundles(here)}
    held = {name.partition("opmark/content/predictors/")[2].rpartition("/")[0] for name in names}
    devices = [yaml.safe_load(path.read_text()) for path in DEVICES.glob("*.yaml")]
    named = {str(one["bundle"]) for one in devices if "bundle" in one}
    assert len(named) > 4
    assert named <= held
    assert held & stored == {one.name for one in newest.values()} | named
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/LICENSE-DATA") for name in names)
