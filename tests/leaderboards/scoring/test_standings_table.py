"""Standings as rows: what is not known is null, what is known is what the results say."""

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.leaderboards.scoring.standings import score_placers
from opmark.leaderboards.scoring.standings_table import standings_table


def test_costs_without_intervals_have_no_bad_day() -> None:
    standings = score_placers([heft_canonical()], ["heft", "round-robin"], budget_s=1)
    entries = standings_table(standings, instances=True)
    assert [entry["name"] for entry in entries] == [row.name for row in standings.rows]
    for entry in entries:
        assert (entry["robust_quality"], entry["p95_quality"]) == (None, None)
        (instance,) = entry["instances"]
        assert entry["planning_s"] == instance["planning_s"] == standings.planning_s[entry["name"], instance["problem"]]
        assert entry["score"] == pytest.approx(instance["quality"])
        assert instance["median_ns"] is None
    assert "instances" not in standings_table(standings)[0]
