"""The problem as a submission reads it."""

import json
from dataclasses import replace

from tests.leaderboards.submissions.folders import PROBLEM, UNITS

from opmark.leaderboards.submissions.protocol import question


def test_the_question_gives_no_answer_away() -> None:
    from opmark.leaderboards.problem.fields import CostOrigin, ReferenceCosts

    known = replace(
        PROBLEM, reference=ReferenceCosts(bound_ns=1, best_known_ns=7777), provenance=CostOrigin(model="secret-net")
    )
    asked = json.loads(question(known))
    assert asked["reference"] is None
    assert "secret-net" not in json.dumps(asked)
    assert [unit["name"] for unit in asked["units"]] == UNITS
