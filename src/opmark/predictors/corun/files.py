"""Files of co-run models: `predictors/<device>/corun/<target>.json`, the journal that they learned from beside them."""

from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.files import json_text, write_sealed
from opmark.core.schema import load
from opmark.core.slug import path_inside
from opmark.core.workspace import Workspace
from opmark.predictors.corun.slowdown import CorunModel

SCHEMA = 1
FOLDER = "corun"


def corun_path(workspace: Workspace, device: str, target_name: str) -> Path:
    """The file of a target's model. Raises `ContentError` for names that leave the workspace."""
    return path_inside(workspace.predictors, device, FOLDER, f"{target_name}.json")


def save_corun(model: CorunModel, path: Path) -> None:
    """Write `model` to `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, json_text({"schema": SCHEMA, **plain(model)}))


def load_corun(path: Path) -> CorunModel:
    """Load the model in `path`. Raises `ContentError` naming the file and every wrong key."""
    return load(path, CorunModel, schema=SCHEMA, sealed=True)


def find_corun(workspace: Workspace, device: str, target_name: str) -> CorunModel | None:
    """Find the model of a target; None where nothing was measured. Raises `ContentError` for a damaged file."""
    path = corun_path(workspace, device, target_name)
    return load_corun(path) if path.is_file() else None
