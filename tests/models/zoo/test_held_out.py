"""No shipped suite draws shapes from a family that is held out, or learns from its networks."""

from collections.abc import Iterator

import pytest
import yaml

from opmark.core.shipped import shipped_content
from opmark.models.zoo import held_out

# Nothing is learned from the made-up targets of the null suite.
SUITES = sorted(path for path in shipped_content().suites.glob("*.yaml") if path.stem != "null")


def names(networks: list[str | dict[str, object]]) -> Iterator[str]:
    for network in networks:
        yield str(network["model"] if isinstance(network, dict) else network).partition("@")[0]


@pytest.mark.parametrize("path", SUITES, ids=[path.stem for path in SUITES])
def test_a_suite_learns_from_no_family_that_is_held_out(path):
    suite = yaml.safe_load(path.read_text())
    drawn = set(names((suite.get("prior") or {}).get("networks", [])))
    split = suite.get("networks") or {}
    assert not {name for name in drawn | set(names(split.get("training", []))) if held_out(name)}
    assert not {name for name in names(split.get("held_out", [])) if not held_out(name)}


def test_the_quickstart_states_errors_on_families_that_are_held_out():
    [path] = [path for path in SUITES if path.stem == "quickstart"]
    split = yaml.safe_load(path.read_text())["networks"]
    assert len(split["held_out"]) >= 5
    assert len(split["training"]) >= 5
