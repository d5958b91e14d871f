"""Nothing is learned from a sealed family, and no other family shares its name."""

import importlib.util

import pytest

from opmark.core.errors import MissingExtraError
from opmark.core.shipped import shipped_content
from opmark.models.zoo import FAMILIES
from opmark.models.zoo.timm_sealed import FAMILY, timm_package


def test_no_suite_but_its_own_names_a_sealed_network():
    for path in shipped_content().suites.glob("*.yaml"):
        named = {name for name in FAMILY.sizes if name in path.read_text()}
        assert named == (set(FAMILY.sizes) if path.stem.startswith("sealed") else set())


def test_no_shipped_predictor_learned_from_a_sealed_network():
    manifests = list(shipped_content().predictors.rglob("manifest.json"))
    assert manifests
    assert not [path for path in manifests if any(f'"{name}' in path.read_text() for name in FAMILY.sizes)]


def test_its_families_are_of_no_other():
    others = {label for one in FAMILIES if one is not FAMILY for label in (one.labels or {}).values()}
    assert len(set(FAMILY.labels.values())) == len(FAMILY.sizes) >= 10
    assert not set(FAMILY.labels.values()) & others


def test_without_timm_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match="timm") as caught:
        timm_package()
    assert "opmark[" in (caught.value.hint or "")
