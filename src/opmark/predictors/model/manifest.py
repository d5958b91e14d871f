"""The manifest of a bundle: everything that a predictor consists of except its learners."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opmark.core import schema
from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError
from opmark.core.hardware.target import Target
from opmark.core.reading import read_json
from opmark.core.slug import Slug, Version
from opmark.predictors.composition.constants import NetworkConstants
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.learners.roofline import Roofline
from opmark.predictors.model.intervals import KindErrors, TrainingRange

SCHEMA = 2
FILE = "manifest.json"
AGAIN = "train or copy the bundle again"

_NATS = (0.0, 50.0)
_NS = (0.0, 1e15)
# The numbers of constants, errors and rooflines by name, with their least and greatest values.
_LIMITS = {
    **dict.fromkeys(("ceiling", "activation_share", "traffic_share"), (0.0, 10.0)),
    "midpoint": (1e-9, 1e9),
    "kernel_scale": (1e-3, 1e3),
    "matrix_gap_midpoint": (0.0, 1e9),
    "steepness": (0.0, 1e3),
    **dict.fromkeys(("gap_ns", "matrix_gap_ns", "python_call_ns", "ns_per_fault", "constant_ns", "least_ns"), _NS),
    **dict.fromkeys(("ns_per_flop", "ns_per_byte", "faults_per_byte", "python_calls_per_node"), (0.0, 1e6)),
    **dict.fromkeys(("share", "view_ns"), _NS),
    **dict.fromkeys(("composition_deviation", "deviation", "half_width", "extrapolated_half_width"), _NATS),
    **dict.fromkeys(("kind_deviation", "group_deviation", "kernel_deviation", "label_error"), _NATS),
    "interval_scale": (0.0, 1e3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRelease:
    """The release that a predictor was trained on; `id` is the hash of its tables."""

    device: Slug
    version: Version
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEntry:
    """One kind: number of training rows, columns and their range, errors on held-out shape groups.

    `roofline` is fitted to the hot labels, whatever the estimator.
    """

    rows: int
    features: tuple[str, ...]
    range: TrainingRange
    errors: KindErrors
    metrics: Mapping[str, float]
    roofline: Roofline


# The method of a predictor that a whole release corrects, kind by kind; the others are for few samples.
CORRECTED = "corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRecord:
    """The making of a predictor with another one's help. `donor` is empty where validation chose a method without it.

    `validation` maps every method that was tried to its mean absolute log error (at most log 2) on held-out shape
    groups of the samples; `method` has the least. `constants` names the predictor that network constants come from, if
    any, `prior` the one whose constants a fit on few networks began from.
    """

    samples: int
    method: str
    donor: str
    donor_id: str
    divergence: float
    validation: Mapping[str, float]
    constants: str = ""
    prior: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleManifest:
    """The content of `manifest.json`. `files` maps the names of files to their SHA-256.

    `anything` predicts kernels of unknown kinds from the bytes that they move. With `derives`, those kinds follow rules
    (`derived_kernels`) instead of being refused: published tables never hold all kinds. `transfer` describes a
    predictor that was made with another one's help. `fusion` holds the verdict on every tested pair of operators for a
    runtime that does not tell which kernels it makes of a network; empty for others.
    """

    target: Target
    estimator: str
    hardware: Hardware
    origin: TrainingRelease
    kinds: Mapping[Slug, KindEntry]
    anything: Roofline
    constants: NetworkConstants
    versions: Mapping[str, str]
    transfer: TransferRecord | None = None
    derives: bool = False
    fusion: Mapping[str, bool] = field(default_factory=dict)
    files: Mapping[Slug, str] = field(default_factory=dict)
    id: str = ""

    @property
    def content_id(self) -> str:
        """The hash of everything except `id`."""
        values = plain(self)
        values.pop("id")
        return content_id(values)


def read_manifest(folder: Path) -> BundleManifest:
    """Read a bundle's manifest; check its hash, and numbers that no prediction could be made with.

    Raises `ContentError` naming file and key.
    """
    path = folder / FILE
    _refuse_older(path)
    manifest = schema.load(path, BundleManifest, schema=SCHEMA)
    written = {key: value for key, value in read_json(path).items() if key not in {"schema", "id"}}
    if content_id(written) != manifest.id:
        raise ContentError("changed since it was written", where=str(path), hint=AGAIN)
    if wrong := list(_wrong_numbers(manifest)):
        raise ContentError("; ".join(wrong), where=str(path), hint=AGAIN)
    return manifest


def _wrong_numbers(manifest: BundleManifest) -> Iterator[str]:
    """The keys with numbers out of range, as sentences."""
    hardware, constants = manifest.hardware, manifest.constants
    sizes = (hardware.vector_bytes, *hardware.cache_bytes)
    if manifest.target.threads < 1:
        yield f"target.threads: must be at least 1, not {manifest.target.threads}"
    if not hardware.cache_bytes or min(sizes) < 1 or hardware.multiprocessors < 0:
        yield "hardware: sizes must be positive"
    places: dict[str, object] = {"constants": constants, "anything": manifest.anything}
    places |= {f"constants.classes.{name}": one for name, one in constants.classes.items()}
    places |= {f"kinds.{kind}.errors": entry.errors for kind, entry in manifest.kinds.items()}
    places |= {f"kinds.{kind}.roofline": entry.roofline for kind, entry in manifest.kinds.items()}
    if constants.host is not None:
        places["constants.host"] = constants.host
        for kind, found in constants.host.enqueue_ns.items():
            if not _NS[0] <= found <= _NS[1]:
                yield f"constants.host.enqueue_ns.{kind}: must be from 0 to {_NS[1]:g}, not {found:g}"
    for place, values in places.items():
        for name, (low, high) in _LIMITS.items():
            value = getattr(values, name, None)
            if value is not None and not low <= value <= high:
                yield f"{place}.{name}: must be from {low:g} to {high:g}, not {value:g}"


def _refuse_older(path: Path) -> None:
    content = read_json(path)
    found = content.get("schema") if isinstance(content, dict) else None
    if isinstance(found, int) and not isinstance(found, bool) and found < SCHEMA:
        raise ContentError(
            f"version {found} is older than {SCHEMA}: this bundle was trained by an earlier version of OpMark",
            where=f"{path}: schema",
            hint="train it again: `opmark predictors train`",
        )
