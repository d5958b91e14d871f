"""A trained predictor as a folder: a compressed member of texts per kind, one manifest with checksums, a card."""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from opmark.core import schema
from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError, OpMarkError
from opmark.core.files import json_text, read_json
from opmark.core.target import Target
from opmark.predictors.inputs.hardware import Hardware
from opmark.predictors.learners.estimator import Fitted
from opmark.predictors.learners.roofline import Roofline
from opmark.predictors.model.adapted_learner import Transfer, restored
from opmark.predictors.model.bundle_card import card
from opmark.predictors.model.constants import NetworkConstants
from opmark.predictors.model.intervals import KindErrors, TrainingRange
from opmark.predictors.model.packing import Packed, member_name, pack

SCHEMA = 2
_AGAIN = "train or copy the bundle again"
FILE = "manifest.json"
CARD = "README.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The release a predictor was trained on; `id` is the hash of its tables."""

    device: str
    version: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEntry:
    """What is known of one kind: its rows, its columns and their range, and errors on held-out groups.

    `roofline` is that of its hot labels, whatever the estimator.
    """

    rows: int
    features: tuple[str, ...]
    range: TrainingRange
    errors: KindErrors
    metrics: Mapping[str, float]
    roofline: Roofline


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`manifest.json`: everything but the learners' texts. `files` maps names to the SHA-256 of files as they lie.

    `transfer` is given where the predictor was made from few samples and another device's predictor.
    """

    target: Target
    estimator: str
    hardware: Hardware
    origin: Origin
    kinds: Mapping[str, KindEntry]
    anything: Roofline
    constants: NetworkConstants
    versions: Mapping[str, str]
    transfer: Transfer | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    @property
    def content_id(self) -> str:
        """The hash of everything but `id` itself."""
        values = plain(self)
        values.pop("id")
        return content_id(values)


@dataclass(frozen=True, kw_only=True, eq=False)
class KindPredictor:
    """One kind's learner as texts by name, unpacked and restored when it is first asked for."""

    kind: str
    estimator: str
    entry: KindEntry
    texts: Mapping[str, str]

    @cached_property
    def fitted(self) -> Fitted:
        """The learner. Raises `ContentError` where the text is not one of this estimator's."""
        try:
            return restored(self.estimator, self.texts)
        except (KeyError, ValueError, TypeError) as error:
            raise ContentError(
                f"the files of kind {self.kind!r} are not a {self.estimator} predictor: {error}",
                hint="train the predictor again with this version of OpMark",
            ) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """A trained predictor of one target."""

    manifest: Manifest
    kinds: Mapping[str, KindPredictor]

    @property
    def target(self) -> Target:
        """What it predicts."""
        return self.manifest.target

    @property
    def constants(self) -> NetworkConstants:
        """The network sum's constants."""
        return self.manifest.constants


def versions() -> dict[str, str]:
    """The versions of what made a bundle."""
    return {name: version(name) for name in ("opmark", "lightgbm", "numpy")}


def save(bundle: Bundle, folder: Path) -> None:
    """Write `folder` whole, in place of an older bundle if one is there. Raises `OpMarkError` when it cannot."""
    members = {member_name(name): pack(kind.texts) for name, kind in bundle.kinds.items()}
    members[CARD] = card(bundle.manifest).encode()
    with _new_folder(folder) as temporary:
        for name, content in members.items():
            (temporary / name).write_bytes(content)
        files = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())}
        manifest = _with(bundle.manifest, files)
        (temporary / FILE).write_text(json_text({"schema": SCHEMA, **plain(manifest)}), encoding="utf-8")


def load(folder: Path, *, target_name: str | None = None) -> Bundle:
    """The bundle in `folder`, every checksum verified; a kind is unpacked when it is first asked for.

    Raises `ContentError` naming the file: absent, changed, of another schema, or for another target than
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
            raise ContentError(f"{name!r} is not listed", where=f"{path}: files", hint=_AGAIN)
        texts = Packed(members[name], str(folder / name))
        kinds[kind] = KindPredictor(kind=kind, estimator=manifest.estimator, entry=entry, texts=texts)
    return Bundle(manifest=manifest, kinds=kinds)


def _verified(folder: Path, name: str, expected: str) -> bytes:
    file = folder / name
    if Path(name).name != name or not file.is_file():
        raise ContentError("missing from the bundle", where=str(file), hint=_AGAIN)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ContentError(f"cannot be read: {error.strerror}", where=str(file)) from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise ContentError("changed since it was written", where=str(file), hint=_AGAIN)
    return content


def read_manifest(folder: Path) -> Manifest:
    """The manifest alone, checked against its own hash. Raises `ContentError` naming file and key."""
    path = folder / FILE
    _refuse_former(path)
    manifest = schema.load(path, Manifest, schema=SCHEMA)
    written = {key: value for key, value in read_json(path).items() if key not in {"schema", "id"}}
    if content_id(written) != manifest.id:
        raise ContentError("changed since it was written", where=str(path), hint=_AGAIN)
    return manifest


def _refuse_former(path: Path) -> None:
    content = read_json(path)
    found = content.get("schema") if isinstance(content, dict) else None
    if isinstance(found, int) and not isinstance(found, bool) and found < SCHEMA:
        raise ContentError(
            f"version {found} is older than {SCHEMA}: this bundle was trained by an earlier version of OpMark",
            where=f"{path}: schema",
            hint="train it again: `opmark predictors train`",
        )


def _with(manifest: Manifest, files: Mapping[str, str]) -> Manifest:
    unsigned = replace(manifest, files=files, id="")
    return replace(unsigned, id=unsigned.content_id)


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that takes the place of `folder` when the block ends without an error."""
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
