"""Scores by split: what counts for a submission, and the mark of an entry that recalls answers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opmark.leaderboards.scoring.metric import Result
from opmark.leaderboards.scoring.splits import (
    Counted,
    SplitScore,
    hidden_scores,
    read_counted,
    recalls,
    score_counted,
    split_score,
    splits_of,
)


def part(score: float, width: float = 0.01, instances: int = 10) -> SplitScore:
    return SplitScore(score=score, low=score - width, high=score + width, instances=instances)


def result(name: str, quality: float) -> Result:
    return Result(
        problem=name, cost=1, bound=1, best_known=1, single=2, scored=True, quality=quality, gain=None, reason=""
    )


def test_twins_and_unseen_instances_count_alike() -> None:
    counted = Counted(sha256="", twins=part(0.9), unseen=part(0.4), source="fresh")
    honest = score_counted(counted, stored=part(0.4))
    assert honest.score == pytest.approx((0.9 * 0.4) ** 0.5)
    assert honest.low < honest.score < honest.high
    assert honest.instances == 20
    only = score_counted(replace(counted, unseen=None), stored=part(0.9))
    assert (only.score, only.low, only.high) == pytest.approx((0.9, 0.89, 0.91))
    lost = score_counted(replace(counted, unseen=part(0.0, 0.0)), stored=part(0.0, 0.0))
    assert lost.score == 0


def test_an_entry_that_recalls_answers_has_its_worst_score() -> None:
    counted = Counted(sha256="", twins=part(0.5), unseen=part(0.3), source="hidden")
    table = score_counted(counted, stored=part(0.99))
    assert (table.score, table.low, table.high) == pytest.approx((0.3, 0.29, 0.31))


@pytest.mark.parametrize(
    ("stored", "other", "found"),
    [
        (part(0.99), part(0.40), True),
        (part(0.99), part(0.95), False),
        (part(0.60, 0.2), part(0.45, 0.2), False),
        (part(0.40), part(0.99), False),
        (part(0.99), part(0.0, 0.0, instances=0), False),
    ],
    ids=["a table", "a little harder", "chance", "better there", "nothing run"],
)
def test_only_a_clear_drop_is_marked(stored: SplitScore, other: SplitScore, found: bool) -> None:
    assert recalls(stored, [part(0.999, instances=0), other]) is found


def test_splits_stand_side_by_side() -> None:
    results = [*(result(f"p{number}", 1.0) for number in range(4)), result("v", 0.5)]
    own = splits_of(results, frozenset({"v"}), None, None)
    assert (own.public, own.validation, own.twins, own.drop, own.recalls) == (1.0, 0.5, None, None, False)
    counted = Counted(sha256="", twins=part(0.5), unseen=part(0.25), source="fresh")
    table = splits_of([replace(one, quality=1.0) for one in results], frozenset({"v"}), counted, part(0.9))
    assert (table.twins, table.hidden, table.drop) == (0.5, 0.25, 0.75)
    assert table.recalls
    assert split_score([]).score == 0


def test_files_that_are_absent_or_old_are_read(tmp_path: Path) -> None:
    assert (read_counted(tmp_path), hidden_scores(tmp_path)) == ({}, {})
    for name, files in {"old": ["receipt.json"], "running": ["owner.json"]}.items():
        folder = tmp_path / "submissions" / name
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).write_text("{}")
    assert read_counted(tmp_path) == {"running": None}
    results = [{"scored": True}, {"scored": False}]
    row = {"rank": 1, "name": "heft", "score": 0.5, "low": 0.4, "high": 0.6, "results": results}
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "standings.json").write_text(
        json.dumps({"schema": 1, "track": "t", "note": "", "rows": [row]})
    )
    assert hidden_scores(tmp_path)["heft"] == SplitScore(score=0.5, low=0.4, high=0.6, instances=1)
