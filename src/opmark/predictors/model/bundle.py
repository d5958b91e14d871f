"""A trained predictor as a folder: one compressed file of texts per kind, a manifest with checksums, and a card."""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, OpMarkError
from opmark.core.files import json_text
from opmark.core.hardware.target import Target
from opmark.core.reading import read_bytes
from opmark.predictors.composition.constants import NetworkConstants
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.estimator import Fitted
from opmark.predictors.model.adapted_learner import FittedTransfer, restored
from opmark.predictors.model.bundle_card import card
from opmark.predictors.model.manifest import AGAIN, FILE, SCHEMA, BundleManifest, KindEntry, read_manifest
from opmark.predictors.model.measured_kernels import MeasuredKernels, measured_from
from opmark.predictors.model.packing import SUFFIX, Packed, member_name, pack

CARD = "README.md"


@dataclass(frozen=True, kw_only=True, eq=False)
class KindPredictor:
    """One kind's learner as texts by name, unpacked and restored on first use."""

    kind: str
    estimator: str
    entry: KindEntry
    texts: Mapping[str, str]

    @cached_property
    def fitted(self) -> Fitted:
        """The learner. Raises `ContentError` where the text does not belong to this estimator."""
        try:
            return restored(self.estimator, self.texts)
        except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise ContentError(
                f"the files of kind {self.kind!r} are not a {self.estimator} predictor: {error}",
                where=self._where,
                hint="train the predictor again with this version of OpMark",
            ) from error

    @property
    def asks_donor(self) -> bool:
        """True if a predictor of another device is corrected, which knows shapes and operations by itself."""
        return isinstance(self.fitted, FittedTransfer) and self.fitted.donor is not None

    @cached_property
    def measured(self) -> MeasuredKernels | None:
        """The measured kernels that it was trained on; None for older predictors. Raises `ContentError`."""
        try:
            return measured_from(self.texts)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise ContentError(
                f"the measured kernels of kind {self.kind!r} cannot be read: {error}", where=self._where, hint=AGAIN
            ) from error

    def latencies(self, inputs: Inputs) -> Latencies:
        """Predict both labels of each kernel. Raises `ContentError` where the learner gives no positive numbers."""
        try:
            found = self.fitted.predict(inputs)
        except (IndexError, ValueError, OverflowError) as error:
            raise ContentError(
                f"the predictor of kind {self.kind!r} fails: {error}", where=self._where, hint=AGAIN
            ) from error
        for values in (found.hot_ns, found.rotated_ns):
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ContentError(
                    f"the predictor of kind {self.kind!r} predicts no positive latency", where=self._where, hint=AGAIN
                )
        return found

    @property
    def _where(self) -> str | None:
        """The file that the learner was read from, if any."""
        return self.texts.where if isinstance(self.texts, Packed) else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """A trained predictor of one target; `path` is its folder, if it was read from one."""

    manifest: BundleManifest
    kinds: Mapping[str, KindPredictor]
    path: Path | None = None

    @property
    def where(self) -> str:
        """The file that errors name."""
        return str(self.path / FILE) if self.path else str(self.target)

    @property
    def target(self) -> Target:
        """The target whose latencies are predicted."""
        return self.manifest.target

    @property
    def constants(self) -> NetworkConstants:
        """The constants of the network sum."""
        return self.manifest.constants


def versions() -> dict[str, str]:
    """Look up the versions of the packages that make a bundle."""
    return {name: version(name) for name in ("opmark", "lightgbm", "numpy")}


def save(bundle: Bundle, folder: Path) -> None:
    """Write `folder` completely, in place of any older bundle.

    Raises `OpMarkError` where that is impossible, `ContentError` where something else lies there, which is kept.
    """
    _refuse_foreign(folder)
    members = {member_name(name): pack(kind.texts) for name, kind in bundle.kinds.items()}
    members[CARD] = card(bundle.manifest).encode()
    with _new_folder(folder) as temporary:
        for name, content in members.items():
            (temporary / name).write_bytes(content)
        files = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())}
        manifest = _with(bundle.manifest, files)
        (temporary / FILE).write_text(json_text({"schema": SCHEMA, **plain(manifest)}), encoding="utf-8")


def load(folder: Path, *, target_name: str | None = None) -> Bundle:
    """Read the bundle in `folder` and verify every checksum; kinds are unpacked on first use.

    Raises `ContentError` naming a file that is absent, changed, of another schema, or for another target than
    `target_name`.
    """
    path = folder / FILE
    if not folder.is_dir():
        raise ContentError("no such predictor bundle", where=str(folder), hint="run `opmark predictors train`")
    manifest = read_manifest(folder)
    if target_name is not None and manifest.target.name != target_name:
        raise ContentError(
            f"this bundle predicts {manifest.target.name}, not {target_name}",
            where=str(path),
            hint="name the target it was trained for, or another bundle",
        )
    members = {name: _verified(folder, name, expected) for name, expected in manifest.files.items()}
    kinds = {}
    for kind, entry in manifest.kinds.items():
        name = member_name(kind)
        if name not in members:
            raise ContentError(f"{name!r} is not listed", where=f"{path}: files", hint=AGAIN)
        texts = Packed(members[name], str(folder / name))
        kinds[kind] = KindPredictor(kind=kind, estimator=manifest.estimator, entry=entry, texts=texts)
    return Bundle(manifest=manifest, kinds=kinds, path=folder)


def _verified(folder: Path, name: str, expected: str) -> bytes:
    file = folder / name
    if Path(name).name != name or not file.is_file():
        raise ContentError("missing from the bundle", where=str(file), hint=AGAIN)
    content = read_bytes(file)
    if hashlib.sha256(content).hexdigest() != expected:
        raise ContentError("changed since it was written", where=str(file), hint=AGAIN)
    return content


def _refuse_foreign(folder: Path) -> None:
    """Raise `ContentError` unless `folder` is absent, empty or a bundle: anything else is not ours to delete."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise ContentError("not a folder", where=str(folder), hint="choose another place")
    inside = sorted(path.name for path in folder.iterdir())
    ours = {FILE, CARD, *(name for name in inside if name.endswith(SUFFIX))}
    strange = [name for name in inside if name not in ours or not (folder / name).is_file()]
    if strange or (inside and FILE not in inside):
        raise ContentError(
            f"holds {(strange or inside)[0]!r}, so it is no predictor that may be replaced",
            where=str(folder),
            hint="choose another folder, or remove this one yourself",
        )


def _with(manifest: BundleManifest, files: Mapping[str, str]) -> BundleManifest:
    unsigned = replace(manifest, files=files, id="")
    return replace(unsigned, id=unsigned.content_id)


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Make a temporary folder that replaces `folder` when the block ends without an error."""
    temporary, old = None, None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        yield temporary
        temporary.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".old-{folder.name}."))
            folder.replace(old)
        temporary.replace(folder)
    except OSError as error:
        raise OpMarkError(
            f"cannot write: {error.strerror or error}",
            where=str(folder),
            hint="free some space or choose another place",
        ) from error
    finally:
        for leftover in (temporary, old):
            if leftover is not None:
                shutil.rmtree(leftover, ignore_errors=True)
