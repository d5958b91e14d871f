"""What can be wrong with the rules that a problem names, and how old problems keep their identity."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import graph, pair, star

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.checks import FACTOR_AT_MOST, checked, rule_findings
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.graph_checks import unit_findings


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"profile": "opsim9"}, "profile: one of .*, not 'opsim9'"),
        ({"synchronisation": "telepathy"}, "synchronisation: one of .*, not 'telepathy'"),
        ({"unit": "hours"}, "unit: one of ns, us, ms, s, not 'hours'"),
        ({"objective": "cost"}, r"unit: one of \$, not 'ns'"),
        ({"optimizer_state": -1.0}, "optimizer_state: must be from 0"),
        ({"micro_batches": -1}, "micro_batches: must not be negative"),
        (
            {"interference": {"x": {"*": {"conv": FACTOR_AT_MOST + 1}}}},
            r"interference\.x\.\*\.conv: must be from 1 to 64",
        ),
        ({"contiguous": True, "cluster": star(devices=63)}, "contiguous: at most 62 devices, not 63"),
        (
            {"reference": ReferenceCosts(bound_ns=8, best_known_ns=7)},
            r"reference\.bound_ns: 8 is above best_known_ns 7, so it bounds nothing",
        ),
        (
            {"reference": ReferenceCosts(bound_ns=-1, best_known_ns=7)},
            r"reference\.bound_ns: must not be negative, and below 2\^63, not -1",
        ),
    ],
)
def test_a_wrong_rule_is_named(change: dict[str, object], sentence: str) -> None:
    problem = graph({"a": 1}, [], pair())
    assert not list(rule_findings(problem))
    with pytest.raises(ContentError, match=sentence):
        checked(replace(problem, **change), "file")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"split_ns": {"y": (1,)}}, r"units\.a\.split_ns\.y: the unit has no exec_ns for that type"),
        ({"split_ns": {"x": (-1,)}}, r"units\.a\.split_ns\.x: must be numbers of ns"),
        ({"interval": {"x": (1.5, 2.0)}}, r"units\.a\.interval\.x: must be two factors around 1"),
        ({"interval": {"x": (0.0, 2.0)}}, r"units\.a\.interval\.x: must be two factors around 1"),
    ],
)
def test_a_wrong_unit_is_named(change: dict[str, object], sentence: str) -> None:
    problem = graph({"a": 1}, [], pair())
    unit = replace(problem.units[0], **change)
    assert len(list(unit_findings(unit))) == 1
    with pytest.raises(ContentError, match=sentence):
        checked(replace(problem, units=(unit,)), "file")


def test_rules_that_are_not_used_leave_the_identity_alone() -> None:
    problem = graph({"a": 1}, [], Cluster(name="one", devices=pair().devices[:1]))
    assert replace(problem, profile="opsim1", interference={}).id == problem.id
    for change in ({"profile": "maxload_serial"}, {"contiguous": True}, {"micro_batches": 2}):
        assert replace(problem, **change).id != problem.id
    split = replace(problem.units[0], split_ns={"x": (1,)})
    assert replace(problem, units=(split,)).id != problem.id
