"""Standings as rows to print: the score, and what stands beside it, from stored files alone."""

from statistics import median
from typing import Any

from opmark.leaderboards.scoring.metric import Result
from opmark.leaderboards.scoring.score_formulas import geometric_mean, quality
from opmark.leaderboards.scoring.standings import Row, Standings


def standings_table(standings: Standings, *, instances: bool = False) -> list[dict[str, Any]]:
    """One mapping per entry, by rank; with `instances` what it did on each, in ns.

    `planning_s` is the median of the seconds it planned, None where no run of it is recorded; `robust_quality` and
    `p95_quality` are the score with median costs, and with those that 95 % of the draws of the predictors' errors do
    not exceed, None where nothing has an interval.
    """
    return [_entry(standings, row, instances) for row in standings.rows]


def _entry(standings: Standings, row: Row, instances: bool) -> dict[str, Any]:
    planned = [standings.planning_s.get((row.name, result.problem)) for result in row.results]
    known = [seconds for seconds in planned if seconds is not None]
    entry = {
        "rank": row.rank,
        "name": row.name,
        "score": row.score,
        "low": row.low,
        "high": row.high,
        "gain": row.metrics["gain"],
        "planning_s": median(known) if known else None,
        "robust_quality": row.metrics["robust-quality"],
        "p95_quality": _p95_quality(row),
    }
    if instances:
        entry["instances"] = [
            _instance(result, seconds, standings.reason(row.name, result))
            for result, seconds in zip(row.results, planned, strict=True)
        ]
    return entry


def _p95_quality(row: Row) -> float | None:
    scored = [result for result in row.results if result.scored]
    if not any(result.drawn for result in scored):
        return None
    return geometric_mean(
        [quality(result.drawn.p95 if result.drawn else result.cost, result.best_known) for result in scored]
    )


def _instance(result: Result, planning_s: float | None, reason: str) -> dict[str, Any]:
    return {
        "problem": result.problem,
        "scored": result.scored,
        "quality": result.quality,
        "cost_ns": result.cost,
        "bound_ns": result.bound,
        "best_known_ns": result.best_known,
        "median_ns": result.drawn.median if result.drawn else None,
        "p95_ns": result.drawn.p95 if result.drawn else None,
        "planning_s": planning_s,
        "reason": reason,
    }
