"""The predictors that come with OpMark, as donors for a target of another device."""

from opmark.core.errors import UnavailableError
from opmark.core.shipped import shipped_content
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import stored_bundles
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.transfer.choosing import Donor


def shipped_donors(target_name: str) -> list[Donor]:
    """The newest predictor of `target_name` of every device that has one; empty where nothing is shipped."""
    try:
        stored = stored_bundles(shipped_content())
    except UnavailableError:
        return []
    newest = {one.device: one for one in stored if one.target == target_name}
    return [
        Donor(name=f"{one.device}/{one.version}:{one.target}", model=CostModel(load(one.path), missing=BYTES_MOVED))
        for one in newest.values()
    ]
