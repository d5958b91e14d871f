"""Annealing runs from the states of a search, in slices of time. The loop itself is compiled: `annealing_loop`.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983. A placement that does not fit
into memory costs more, so that a run may pass through it and be driven back as the memory penalty rises (strategic
oscillation: Glover, Decision Sciences 8(1), 1977).
"""

import math
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opmark.leaderboards.problem.problem import smallest_problem
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.lists.list_schedule import schedule_by_earliest_finish, schedule_by_earliest_start
from opmark.leaderboards.search.regions import neighbourhood_of
from opmark.leaderboards.search.states import Search, State
from opmark.leaderboards.simulator.several_passes import passes_of

if TYPE_CHECKING:
    from opmark.leaderboards.search.annealing_loop import CandidateJudge, Run, Verdict

# The memory penalty grows by this factor after a run in which nothing fitted, up to a limit.
PENALTY_GROWTH, LARGEST_PENALTY_FACTOR = 4.0, 4.0**6
# Steps between two looks at the clock before the speed is known, the fewest later, and for how long then.
FIRST_STEPS, FEWEST_STEPS, SLICE_S = 128, 32, 0.04


class Cooling(NamedTuple):
    """The plan of an annealing run.

    The temperature falls geometrically between two shares of the cost (both 0: a descent); the memory penalty, added
    per device's worth of bytes too many, goes between two multiples of the cost at the start. A share `reorder` of the
    moves changes a priority, a share `twice` consists of two. Without `regions` only single groups move. Where loads
    count, evenly loaded servers add up to `unevenness` times the cost, and with `guided` many moves start from the
    busiest device.
    """

    temperature_first: float = 0.0
    temperature_last: float = 0.0
    penalty_first: float = 8.0
    penalty_last: float = 8.0
    penalty_factor: float = 1.0
    unevenness: float = 0.05
    reorder: float = 0.25
    twice: float = 0.2
    regions: bool = True
    guided: bool = True


class Annealer:
    """Annealing of the states of one search; good states go to its incumbent.

    With `steps_at_most` (0: no limit) rounds of runs are planned by steps instead of by the clock.
    """

    def __init__(self, search: Search, seed: int, *, steps_at_most: int = 0) -> None:
        from opmark.leaderboards.search.moves import moves_of

        self.search, self.steps_at_most = search, steps_at_most
        self.steps, self.simulated = 0, 0
        self.steps_per_s = 0.0
        self._moves = moves_of(neighbourhood_of(search.problem), seed)
        self._judge = _judge_of(search)
        self.compiled = bool(self._judge.tracked or self._judge.simulated)
        self._penalty_factor = 1.0

    @property
    def by_loads(self) -> bool:
        """True where loads alone judge candidates."""
        return bool(self._judge.tracked and not self._judge.simulated)

    @property
    def affordable_steps(self) -> float:
        """The steps left: of those allowed, or in the time left at the speed so far; 0 where it is not known."""
        if self.steps_at_most:
            return self.steps_at_most - self.steps
        return self.steps_per_s * self.search.incumbent.left_s

    def run(self, state: State, steps: int, cooling: Cooling, *, stop: Callable[[], bool] = lambda: False) -> State:
        """The best state that fits of a run of so many steps, or until time is up; its end where nothing fits.

        The same for a seed as long as the time does not cut it short.
        """
        reorder = (cooling.reorder if self.search.movable else 1.0) if self.search.ordered else 0.0
        cooling = cooling._replace(penalty_factor=self._penalty_factor, reorder=reorder)
        run = self._begin(state, steps, cooling)
        tally, incumbent = run.state.tally[0], self.search.incumbent
        reported = math.inf
        while tally["step"] < steps and incumbent.left_s > 0 and not stop():
            count = FIRST_STEPS
            if self.steps_per_s:
                count = max(FEWEST_STEPS, int(self.steps_per_s * min(SLICE_S, incumbent.left_s)))
            count = min(count, steps - int(tally["step"]))
            begun = time.monotonic()
            self._anneal(run, count)
            took = time.monotonic() - begun
            self.steps_per_s = count / took if took > 0 else 0.0
            self.steps += count
            if tally["best"] < reported:
                reported = float(tally["best"])
                self.search.report(_best_of(run))
        self.simulated += int(tally["simulated"])
        if math.isfinite(tally["best"]):
            self._penalty_factor = max(1.0, self._penalty_factor / PENALTY_GROWTH)
            return _best_of(run)
        self._penalty_factor = min(LARGEST_PENALTY_FACTOR, self._penalty_factor * PENALTY_GROWTH)
        return self.search.state(run.state.chosen, run.state.rank)

    def _begin(self, state: State, steps: int, cooling: Cooling) -> "Run":
        from opmark.leaderboards.search import annealing_loop

        order = np.argsort(state.priority, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        candidate = annealing_loop.RunState(
            chosen=state.chosen.copy(),
            device=self._judge.loads.device,
            order=order,
            rank=rank,
            best_chosen=state.chosen.copy(),
            best_rank=rank.copy(),
            tally=np.zeros(1, dtype=annealing_loop.TALLY),
        )
        candidate.tally["steps"] = steps
        run = annealing_loop.Run(state=candidate, cooling=cooling, moves=self._moves, judge=self._judge)
        loop: Any = annealing_loop
        if self.compiled:
            loop.begin_judged(run)
        else:
            loop.place(run)
            loop.begin(run, self._judged(run))
        return run

    def _anneal(self, run: "Run", count: int) -> None:
        from opmark.leaderboards.search import annealing_loop

        loop: Any = annealing_loop
        if self.compiled:
            loop.anneal(run, count)
            return
        for _ in range(count):
            if loop.propose(run):
                loop.decide(run, self._judged(run))

    def _judged(self, run: "Run") -> "Verdict":
        """The simulator's verdict, for problems that no compiled judge knows."""
        from opmark.leaderboards.search.annealing_loop import Verdict

        costs, excess = self.search.costs(run.state.device[None, :], run.state.rank)
        return Verdict(cost=float(costs[0]), uneven=0.0, excess=float(excess[0]))


def _best_of(run: "Run") -> State:
    best = float(run.state.tally[0]["best"])
    return State(chosen=run.state.best_chosen.copy(), priority=run.state.best_rank.copy(), energy=best, fits=True)


def _judge_of(search: Search) -> "CandidateJudge":
    """The judge of a problem: by loads where only they count, else by simulation; neither where passes are several."""
    from opmark.leaderboards.search.annealing_loop import CandidateJudge
    from opmark.leaderboards.search.schedules import schedules_of
    from opmark.leaderboards.simulator.load_tracker import load_tracker

    problem, rules = search.problem, search.rules
    plain = rules.model is None and not problem.limits and passes_of(problem) is None
    stashed = plain and problem.memory_mode == "stash"
    tracked = plain and problem.objective == "throughput"
    tracked_memory = tracked and problem.memory_mode == "sum"
    simulated = plain and problem.objective in ("latency", "throughput") and not tracked_memory
    # The memory of a full pipeline and its loads need no schedule.
    simulated = simulated and not (tracked and stashed)
    return CandidateJudge(
        tracked=int(tracked),
        tracked_memory=int(tracked_memory),
        stashed=int(stashed),
        simulated=int(simulated),
        contiguous=int(problem.contiguous),
        memory=problem.arrays.device_memory_bytes,
        loads=load_tracker(problem.arrays, contention=rules.contention),
        schedules=schedules_of(problem, rules, needed=simulated and not tracked),
    )


@cache
def warm_up() -> None:
    """Compile list scheduling and annealing on the smallest problem."""
    problem = smallest_problem()
    schedule_by_earliest_finish(problem, problem.arrays.topological)
    schedule_by_earliest_start(problem, problem.arrays.default_priority)
    # no matter how long compiling takes
    search = Search(problem, Incumbent(problem, "warm-up", math.inf))
    warm = Cooling(temperature_first=0.1, temperature_last=0.1)
    Annealer(search, 0).run(search.state(np.zeros(2, dtype=np.int64)), 4, warm)
