"""Paths of bundles in a workspace: `predictors/<device>/<version>/<target>/`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.registry import unknown_name
from opmark.core.shipped import shipped_content
from opmark.core.slug import path_inside
from opmark.core.workspace import Workspace, version_key, versions
from opmark.predictors.model.manifest import CORRECTED, FILE, read_manifest

# The device that answers where nobody names one, of those whose predictors come with OpMark: its labels are the surest.
REFERENCE_DEVICE = "amd-26-2-1-2vcpu-l3-32m"
_FULL = "device/version/target"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBundle:
    """The path of one bundle, and the parts of its name."""

    device: str
    version: str
    target: str
    path: Path

    @property
    def name(self) -> str:
        """`<device>/<version>/<target>`, as in commands."""
        return f"{self.device}/{self.version}/{self.target}"


def with_predictors(workspace: Workspace | None) -> Workspace:
    """The `workspace` if it holds a bundle, else the content shipped with OpMark, which is never written to.

    Raises `UnavailableError` where nothing is shipped.
    """
    if workspace is not None and next(_scan(workspace.predictors), None) is not None:
        return workspace
    return shipped_content()


def stored_bundles(workspace: Workspace) -> list[StoredBundle]:
    """List every bundle by device and target, oldest version first."""
    return sorted(_scan(workspace.predictors), key=lambda one: (one.device, one.target, version_key(one.version)))


def find_bundle(workspace: Workspace, target_name: str, *, device: str | None = None) -> Path:
    """Find the newest bundle of a target; `device` is needed where several have one. Raises `ContentError`.

    Bundles of a preliminary version (0.x) of another device make no target ambiguous. Where all come with
    OpMark, here or in a copy of the repository, those of the reference device answer.
    """
    all_bundles = stored_bundles(workspace)
    found = [one for one in all_bundles if one.target == target_name and device in {None, one.device}]
    if not found:
        known = sorted({f"{one.device}/{one.target}" if device else one.target for one in all_bundles})
        wanted = f"{device}/{target_name}" if device else target_name
        if known:
            error = unknown_name("predictor's target", wanted, known)
            raise ContentError(error.message, where=str(workspace.predictors), hint=error.hint)
        raise ContentError(
            f"no predictor of {wanted}", where=str(workspace.predictors), hint="run `opmark predictors train`"
        )
    final = [one for one in found if version_key(one.version) >= version_key("1.0.0")]
    if device is None and final:
        found = final
    devices = sorted({one.device for one in found})
    if len(devices) > 1 and REFERENCE_DEVICE in devices and _all_shipped(found):
        devices = [REFERENCE_DEVICE]
        found = [one for one in found if one.device == REFERENCE_DEVICE]
    if len(devices) > 1:
        raise ContentError(
            f"{target_name} has predictors for {len(devices)} devices: {', '.join(devices)}",
            where=str(workspace.predictors),
            hint=f"say which, like {devices[0]}/{target_name}",
        )
    return max(found, key=lambda one: version_key(one.version)).path


def _all_shipped(found: Iterable[StoredBundle]) -> bool:
    """True where every bundle is one of those that come with OpMark."""
    shipped = {one.name for one in _scan(shipped_content().predictors)}
    return all(one.name in shipped for one in found)


def path_of(workspace: Workspace, name: str) -> Path:
    """Find the bundle `<device>/<version>/<target>`, or the newest of a target or of `<device>/<target>`.

    Where the workspace lacks a full name, that of OpMark's own content is found: a version never changes. Raises
    `ContentError`.
    """
    shipped = stored_bundles(shipped_content()) if name.count("/") == _FULL.count("/") else []
    for one in (*stored_bundles(workspace), *shipped):
        if one.name == name:
            return one.path
    device, _, target_name = name.rpartition("/")
    return find_bundle(workspace, target_name, device=device or None)


def bundle_path(workspace: Workspace, device: str, version: str, target_name: str) -> Path:
    """The folder for the bundle of a release's target. Raises `ContentError` for names that leave the workspace."""
    return path_inside(workspace.predictors, device, version, target_name)


def refuse_known_version(folders: Iterable[Path]) -> None:
    """Raise `ContentError` where one of `folders` holds a predictor already: a version never changes."""
    for path in folders:
        if (path / FILE).is_file():
            raise ContentError(
                "this version of the predictor exists, and a version never changes",
                where=str(path),
                hint="store the new one under the next version",
            )


def refuse_to_replace(path: Path) -> None:
    """Raise `ContentError` where `path` holds a predictor that was trained on a whole release."""
    made = read_manifest(path).transfer if (path / FILE).is_file() else None
    if (path / FILE).is_file() and (made is None or made.method == CORRECTED):
        raise ContentError(
            "a predictor trained on the whole release lies there, and is not replaced by one of few samples",
            where=str(path),
            hint="keep the new one elsewhere: --to FOLDER",
        )


def _scan(folder: Path) -> Iterator[StoredBundle]:
    if not folder.is_dir():
        return
    for device in folder.iterdir():
        if device.name.startswith("."):
            continue
        for version in versions(device):
            for target in (device / version).iterdir():
                if (target / FILE).is_file() and not target.name.startswith("."):
                    yield StoredBundle(device=device.name, version=version, target=target.name, path=target)
