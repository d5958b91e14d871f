"""Cards of a workspace's predictors, from their manifests."""

from pathlib import Path

import pytest
from tests.predictors.model.test_bundle import bundle

from opmark.core.errors import ContentError
from opmark.core.workspace import Workspace
from opmark.leaderboards.site.predictor_card import predictor_cards
from opmark.predictors.model.bundle import Bundle, load, save
from opmark.predictors.model.bundle_paths import bundle_path

__all__ = ["bundle"]


def test_a_card_says_what_the_manifest_says(bundle: Bundle, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert predictor_cards(workspace) == ()
    origin = bundle.manifest.origin
    folder = bundle_path(workspace, origin.device, origin.version, bundle.target.name)
    save(bundle, folder)
    (card,) = predictor_cards(workspace)
    assert card.name == f"{origin.device}/{origin.version}/{bundle.target.name}"
    assert (card.id, card.release_id, card.data_card) == (load(folder).manifest.id, origin.id, "")
    assert [kind.kind for kind in card.kinds] == sorted(bundle.manifest.kinds)
    assert all(kind.rows == bundle.manifest.kinds[kind.kind].rows and kind.interval_factor > 1 for kind in card.kinds)
    release = workspace.datasets / origin.device / origin.version
    release.mkdir(parents=True)
    (release / "README.md").write_text("# Release\n")
    assert predictor_cards(workspace)[0].data_card == "# Release\n"
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ContentError, match=r"manifest\.json"):
        predictor_cards(workspace)
