"""The data that the site shows of a predictor: its accuracy, and the release of measurements behind it."""

from dataclasses import dataclass

from opmark.core.reading import read_text
from opmark.core.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class KindAccuracy:
    """Errors of one kind on held-out shape groups, as fractions; 90 % of kernels lie within `interval_factor`."""

    kind: str
    rows: int
    groups: int
    median: float
    within_tenth: float
    interval_factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorCard:
    """One bundle. `release` is `<device>/<version>`; `data_card` is its card in Markdown, empty where it is missing."""

    name: str
    id: str
    device: str
    target: str
    estimator: str
    runtime: str
    release: str
    release_id: str
    networks: str
    kinds: tuple[KindAccuracy, ...]
    data_card: str = ""


def predictor_cards(workspace: Workspace) -> tuple[PredictorCard, ...]:
    """The cards of all bundles in the workspace, by name. Raises `ContentError` for a damaged manifest."""
    import math

    from opmark.predictors.model.bundle_paths import stored_bundles
    from opmark.predictors.model.manifest import read_manifest

    found = []
    for stored in stored_bundles(workspace):
        manifest = read_manifest(stored.path)
        origin = manifest.origin
        card = workspace.datasets / origin.device / origin.version / "README.md"
        found.append(
            PredictorCard(
                name=stored.name,
                id=manifest.id,
                device=stored.device,
                target=stored.target,
                estimator=manifest.estimator,
                runtime=manifest.target.version,
                release=f"{origin.device}/{origin.version}",
                release_id=origin.id,
                networks=manifest.constants.note,
                kinds=tuple(
                    KindAccuracy(
                        kind=kind,
                        rows=entry.rows,
                        groups=entry.errors.groups,
                        median=entry.metrics.get("median", math.nan),
                        within_tenth=entry.metrics.get("acc10", math.nan),
                        interval_factor=math.exp(entry.errors.half_width),
                    )
                    for kind, entry in sorted(manifest.kinds.items())
                ),
                data_card=read_text(card) if card.is_file() else "",
            )
        )
    return tuple(found)
