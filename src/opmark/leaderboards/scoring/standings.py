"""Rank entries by score. Standings follow from stored solutions alone: same solutions, same bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import NothingSelectedError, OpMarkError, PlacementError
from opmark.core.hardware.cluster import PROVENANCES
from opmark.leaderboards.bounds.bounds import lower_bound
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.metric import METRICS, Drawn, Result
from opmark.leaderboards.scoring.robustness import (
    drawn_factors,
    has_intervals,
    robustness,
    robustness_of_all,
    robustness_of_fronts,
    shares_won,
)
from opmark.leaderboards.scoring.score_formulas import (
    gain,
    geometric_mean,
    has_headroom,
    interval,
    quality,
    shared_ranks,
    solved_alike,
)
from opmark.leaderboards.scoring.splits import Counted, Splits, SplitScore, score_counted, split_score
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate

# A cost is proved where its bound is no further below it, as a share; one is near the optimum within the other.
PROVED_WITHIN, NEAR = 1e-6, 0.01
# By (entry, problem): the evaluation of an answer, or the reason why it is invalid.
Outcomes = Mapping[tuple[str, str], Evaluation | str]
# By (entry, problem): the cost of an answer, or the reason why it is invalid.
Costs = Mapping[tuple[str, str], int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One entry. `low` and `high` are the score's 95 % interval; `metrics` are the columns of `METRICS`.

    The score of a submission follows from `counted`; its results on stored instances are shown, but do not count.
    """

    rank: int
    name: str
    score: float
    low: float
    high: float
    metrics: Mapping[str, float | None]
    results: tuple[Result, ...]
    counted: Counted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Rows by rank. The fields after `note` are not stored in the file; keys are (entry, problem) or entries.

    `reasons` come from the records of runs without an answer. `not_run` are the entries that lack a package here, with
    the reason; they have no row. `costs_from` maps problems to the source of their costs.
    """

    track: str
    rows: tuple[Row, ...]
    note: str = ""
    evaluations: Mapping[tuple[str, str], Evaluation] = field(default_factory=dict, compare=False)
    planning_s: Mapping[tuple[str, str], float] = field(default_factory=dict, compare=False)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict, compare=False)
    splits: Mapping[str, Splits] = field(default_factory=dict, compare=False)
    not_run: Mapping[str, str] = field(default_factory=dict, compare=False)
    costs_from: Mapping[str, str] = field(default_factory=dict, compare=False)

    def reason(self, entry: str, result: Result) -> str:
        """The reason for an invalid answer, from the run's record where it has one; empty for a valid answer."""
        return self.reasons.get((entry, result.problem), result.reason) if result.reason else ""

    def by_source(self, row: Row) -> dict[str, SplitScore]:
        """The score of a row on the problems of each source of costs that has any, the surest source first."""
        found: dict[str, list[Result]] = {name: [] for name in PROVENANCES}
        for result in row.results:
            if result.problem in self.costs_from:
                found[self.costs_from[result.problem]].append(result)
        scores = {name: split_score(results) for name, results in found.items()}
        return {name: score for name, score in scores.items() if score.instances}

    def file(self) -> dict[str, object]:
        """The content of `standings.json`; undefined metrics and draws are left out."""
        rows = plain(self.rows)
        for row in rows:
            row["metrics"] = {name: value for name, value in row["metrics"].items() if value is not None}
            if row["counted"] is None:
                del row["counted"]
            for result in row["results"]:
                if result["drawn"] is None:
                    del result["drawn"]
                elif result["drawn"]["won"] is None:
                    del result["drawn"]["won"]
        return {"schema": 1, "track": self.track, "note": self.note, "rows": rows}


def rank_solutions(
    problems: Sequence[Problem],
    solutions: Mapping[str, Mapping[str, Solution | str]],
    *,
    track: str = "",
    good: Sequence[str] = (),
    draws: bool = True,
) -> Standings:
    """Rank entries by their solutions, keyed by entry and problem name; a string is the reason for a missing one.

    Without `draws` the costs over draws of the predictors' errors, which take a hundred simulations each, are unknown.
    """
    evaluations: dict[tuple[str, str], Evaluation | str] = {}
    for problem in problems:
        found = solution_costs(problem, {name: given.get(problem.name) for name, given in solutions.items()})
        evaluations |= {(name, problem.name): one for name, one in found.items()}
    return rank(problems, sorted(solutions), evaluations, track=track, good=good, draws=draws)


def solution_costs(problem: Problem, solutions: Mapping[str, Solution | str | None]) -> dict[str, Evaluation | str]:
    """The evaluation of each solution of one problem, or the reason why there is none; a string is such a reason."""
    found: dict[str, Evaluation | str] = {}
    for name, solution in solutions.items():
        if not isinstance(solution, Solution):
            found[name] = "no solution was submitted" if solution is None else solution
            continue
        try:
            found[name] = evaluate(problem, solution)
        except OpMarkError as error:
            found[name] = str(error)
    return found


def rank(
    problems: Sequence[Problem],
    names: Sequence[str],
    evaluations: Outcomes,
    *,
    track: str = "",
    good: Sequence[str] = (),
    draws: bool = True,
) -> Standings:
    """Rank the entries `names` on `problems`. Raises `NothingSelectedError` without problems or entries."""
    costs = {key: found.cost if isinstance(found, Evaluation) else found for key, found in evaluations.items()}
    drawn = drawn_costs(problems, names, evaluations) if draws else {}
    found = rank_costs(problems, names, costs, drawn, track=track, good=good)
    valid = {key: found for key, found in evaluations.items() if isinstance(found, Evaluation)}
    return replace(found, evaluations=valid)


def rank_costs(
    problems: Sequence[Problem],
    names: Sequence[str],
    costs: Costs,
    drawn: Mapping[tuple[str, str], Drawn],
    *,
    track: str = "",
    good: Sequence[str] = (),
    singles: Mapping[str, int | None] | None = None,
) -> Standings:
    """As `rank`, from costs and drawn costs that are known; the result has no evaluations.

    A problem that all entries in `good` solve alike is not scored. `singles` are the costs of the best single device of
    all problems, where they are known.
    """
    if not problems or not names:
        raise NothingSelectedError("nothing to rank: no problem or no entry", where=track or None)
    alone = {problem.name: single_cost(problem) for problem in problems} if singles is None else singles
    yardsticks = {
        problem.name: _Yardstick.of(problem, _valid(problem, names, costs), alone[problem.name]) for problem in problems
    }
    for problem in problems:
        if solved_alike([costs.get((name, problem.name)) for name in good]):
            yardsticks[problem.name] = replace(yardsticks[problem.name], scored=False)
    note = ""
    if not any(yardstick.scored for yardstick in yardsticks.values()):
        note = "no instance leaves anything to win or tells good entries apart; all are scored nevertheless"
    unranked = []
    for name in names:
        results = tuple(
            replace(
                _result(problem.name, costs[name, problem.name], yardsticks[problem.name]),
                scored=yardsticks[problem.name].scored or bool(note),
                drawn=drawn.get((name, problem.name)),
            )
            for problem in problems
        )
        qualities = [result.quality for result in results if result.scored]
        unranked.append((geometric_mean(qualities), *interval(qualities), name, results))
    unranked.sort(key=lambda item: (-item[0], item[3]))
    ranks = shared_ranks([item[:3] for item in unranked])
    rows = tuple(
        Row(
            rank=place,
            name=name,
            score=score,
            low=low,
            high=high,
            metrics={metric: METRICS.load(metric).value(results) for metric in METRICS.names()},
            results=results,
        )
        for place, (score, low, high, name, results) in zip(ranks, unranked, strict=True)
    )
    return Standings(
        track=track, rows=rows, note=note, costs_from={problem.name: problem.costs_from for problem in problems}
    )


def with_counted(standings: Standings, counted: Mapping[str, Counted | None]) -> Standings:
    """The standings in which submissions have the scores of the splits that count; those with None have no row."""
    rows = []
    for row in standings.rows:
        own = counted.get(row.name)
        if own is None:
            rows += [] if row.name in counted else [row]
            continue
        score = score_counted(own, split_score(row.results))
        rows.append(replace(row, score=score.score, low=score.low, high=score.high, counted=own))
    rows.sort(key=lambda row: (-row.score, row.name))
    ranks = shared_ranks([(row.score, row.low, row.high) for row in rows])
    return replace(standings, rows=tuple(replace(row, rank=rank) for rank, row in zip(ranks, rows, strict=True)))


def single_cost(problem: Problem) -> int | None:
    """The cost of the best single device; None where none can run the problem."""
    try:
        return best_single_device(problem)[1]
    except PlacementError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Yardstick:
    """The costs that an instance's answers are compared with."""

    bound: int
    best_known: int
    single: int | None
    scored: bool

    @classmethod
    def of(cls, problem: Problem, costs: list[int], single: int | None) -> "_Yardstick":
        known = problem.reference
        # Without a frozen reference, the best known cost is the best one here.
        best = known.best_known_ns if known else min([*costs, *([single] if single is not None else [])], default=0)
        bound = known.bound_ns if known else lower_bound(problem)
        return cls(bound=bound, best_known=best, single=single, scored=has_headroom(best, single))


def _valid(problem: Problem, names: Sequence[str], costs: Costs) -> list[int]:
    found = [costs[name, problem.name] for name in names]
    return [cost for cost in found if not isinstance(cost, str)]


def drawn_costs(
    problems: Sequence[Problem], names: Sequence[str], evaluations: Outcomes
) -> dict[tuple[str, str], Drawn]:
    """The drawn costs of every valid answer; answers to one problem share draws. Needs intervals."""
    found = {}
    for problem in filter(has_intervals, problems):
        valid = {
            name: evaluation
            for name in names
            if isinstance(evaluation := evaluations.get((name, problem.name)), Evaluation)
        }
        # Parts have the kind and the shape group of their unit, so that an answer that splits has the same draws.
        drawn = {name: robustness(one.decided, one.placement) for name, one in valid.items() if one.decided is not None}
        factors = drawn_factors(problem)
        fronts = {name: one for name, one in valid.items() if one.front}
        if fronts:
            of_fronts = robustness_of_fronts(problem, list(fronts.values()), factors=factors)
            drawn |= dict(zip(fronts, of_fronts, strict=True))
        same = {name: one.placement for name, one in valid.items() if one.decided is None and not one.front}
        if same:
            together = robustness_of_all(problem, list(same.values()), factors=factors)
            drawn |= dict(zip(same, together, strict=True))
        won = shares_won({name: one.costs for name, one in drawn.items()}) if problem.limits else {}
        for name in valid:
            one = drawn[name]
            found[name, problem.name] = Drawn(median=one.median, p95=one.p95, won=won.get(name))
    return found


def _result(problem: str, found: int | str, yardstick: _Yardstick) -> Result:
    cost = None if isinstance(found, str) else found
    return Result(
        problem=problem,
        cost=cost,
        reason=found if isinstance(found, str) else "",
        bound=yardstick.bound,
        best_known=yardstick.best_known,
        single=yardstick.single,
        scored=yardstick.scored,
        quality=quality(cost, yardstick.best_known),
        gain=gain(cost, yardstick.best_known, yardstick.single),
    )


def standings_table(standings: Standings, *, instances: bool = False) -> list[dict[str, Any]]:
    """One mapping per entry, by rank; with `instances` also its result on each, in ns.

    `planning_s` is the median planning time, None without a recorded run. `robust_quality` and `p95_quality` are the
    score with the median and the 95th percentile of the drawn costs, None where no problem has intervals.
    `by_provenance` has the score on the problems of each source of costs, `proved` the problems with a proved optimum
    and those of them that the entry solves within 1 %.
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
        "by_provenance": plain(standings.by_source(row)),
        "proved": _proved(row),
        **_split_columns(standings.splits.get(row.name)),
    }
    if instances:
        entry["instances"] = [
            {
                "problem": result.problem,
                "provenance": standings.costs_from.get(result.problem),
                "scored": result.scored,
                "quality": result.quality,
                "cost_ns": result.cost,
                "bound_ns": result.bound,
                "best_known_ns": result.best_known,
                "median_ns": result.drawn.median if result.drawn else None,
                "p95_ns": result.drawn.p95 if result.drawn else None,
                "planning_s": seconds,
                "reason": standings.reason(row.name, result),
            }
            for result, seconds in zip(row.results, planned, strict=True)
        ]
    return entry


def _proved(row: Row) -> dict[str, int]:
    """The number of problems whose best known cost is proved, and of those on which the entry is within 1 % of it."""
    proved = [one for one in row.results if one.bound >= one.best_known * (1 - PROVED_WITHIN)]
    near = [one for one in proved if one.cost is not None and one.cost <= (1 + NEAR) * one.best_known]
    return {"problems": len(proved), "within_1_percent": len(near)}


def _split_columns(splits: Splits | None) -> dict[str, Any]:
    return plain(splits) if splits else {}


def _p95_quality(row: Row) -> float | None:
    scored = [result for result in row.results if result.scored]
    if not any(result.drawn for result in scored):
        return None
    return geometric_mean(
        [quality(result.drawn.p95 if result.drawn else result.cost, result.best_known) for result in scored]
    )
