"""OpMark's own placer: starts from published algorithms, then a portfolio of annealing runs.

1. Starts: single devices, a filling by memory, and the answers of other placers: list schedules, balanced stages, and
   dynamic programs where loads count, parts must be contiguous or micro-batches follow one another.
2. Where there are few placements, all of them.
3. Annealing in rounds that grow longer, from the best states so far: `search.portfolio`.
4. Idle devices as replicas, where the problem allows them.

In a pool it first chooses devices: every fleet by its bound, quick looks, then 1 to 4 on fewer and fewer fleets. Fleets
of equal devices come first, with the very search of `equal-types`: its answer is a start for all others.

The search ends early at a proven lower bound.
"""

from collections.abc import Sequence

from opmark.leaderboards.bounds.bounds import cheap_lower_bound
from opmark.leaderboards.bounds.relaxation import is_load
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import Annealer, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.portfolio import anneal_in_rounds, enumerated
from opmark.leaderboards.search.renting.equal_hunt import explore, hunt_equal
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt
from opmark.leaderboards.search.renting.pace import ClockPace
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.states import Search, State

# The rest of the budget is for handing the answer over.
SEARCH_SHARE = 0.95
LISTS = ("heft", "m-topo", "peft", "fastt", "etf", "sct", "gpipe", "dapple")
PROGRAMS = ("pipedream", "dnn-partitioning-dp-linear")
# In a pool: quick placers that choose devices too, the share of the time left for each, and of the budget for all.
CHOOSERS = ("melange", "sailor-stages")
CHOOSER_SHARE, CHOOSING_SHARE = 0.15, 0.5
# Only worth its time where parts must be contiguous, or where a published model judges.
EXACT_PROGRAM = "dnn-partitioning-dp"
# A placer gets this share of the time left; after this share of the whole time no other one starts.
START_SHARE, STARTS_SHARE = 0.15, 0.25
# Of the budget, for replicas in the end, where a problem allows them.
REPLICAS_SHARE = 0.15


class OpMark(Placer):
    """Anytime, and never worse than the placers that it starts from."""

    summary = "list schedules or dynamic programs, then a portfolio of compiled annealing runs; small ones exactly"
    own = True

    def prepare(self) -> None:
        """Compile the search and the programs it starts from."""
        warm_up()
        for name in (*PROGRAMS, EXACT_PROGRAM):
            PLACERS.load(name).prepare()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement found; the same for a seed where the budget does not cut the search short."""
        if problem.limits or problem.objective == "rent":
            return _rented(problem, budget_s, seed)
        return self.place_from(problem, (), budget_s=budget_s, seed=seed)

    def place_from(
        self, problem: Problem, known: Sequence[Placement], *, budget_s: float, seed: int, steps: int = 0
    ) -> Solution:
        """Search from known placements, or from the answers of other placers where there are none.

        With `steps` (0: no limit) so many annealing steps are made, wherever the clock stands.
        """
        incumbent = Incumbent(problem, "opmark", budget_s * SEARCH_SHARE)
        search = Search(problem, incumbent)
        states = _known_starts(search, known) if known else _starts(search, seed, share=1.0 if steps else STARTS_SHARE)
        bound = cheap_lower_bound(problem)
        reserved_s = REPLICAS_SHARE * incumbent.left_s if problem.replication else 0.0
        if problem.replication:
            replicated(problem, incumbent)

        def done() -> bool:
            proved = incumbent.value is not None and incumbent.value <= bound
            return proved or incumbent.left_s < reserved_s

        if search.free and not done():
            states += enumerated(search)
            anneal_in_rounds(Annealer(search, seed, steps_at_most=steps), states, seed, done)
        if problem.replication:
            replicated(problem, incumbent)
        return incumbent.solution()


PLACER = OpMark()


def _rented(problem: Problem, budget_s: float, seed: int) -> Solution:
    """The best placement on any fleet of a pool, or the best front of them."""
    hunt = FleetHunt(problem, "opmark", budget_s)
    hunt_equal(hunt, budget_s=budget_s, seed=seed)
    for name in CHOOSERS:
        if hunt.incumbent.spent_share > CHOOSING_SHARE:
            break
        found = hunt.incumbent.consider_placer(PLACERS.load(name), seed, share=CHOOSER_SHARE)
        if found is not None:
            hunt.note(found)
    explore(hunt, list(hunt.pool.fleets()), ClockPace(hunt, seed=seed))
    return hunt.solution()


def _known_starts(search: Search, known: Sequence[Placement]) -> list[State]:
    """The states of known placements, and of all single devices."""
    states = search.starts(starting_rows(search.problem, search.groups))
    for placement in known:
        search.incumbent.consider(placement)
        states += _states_of(search, placement)
    return states


def _starts(search: Search, seed: int, *, share: float) -> list[State]:
    """The states that the search starts from, within a share of its time; the incumbent knows all of them."""
    problem, incumbent = search.problem, search.incumbent
    states = search.starts(starting_rows(problem, search.groups))
    for state in sorted(states, key=lambda one: one.merit)[:2]:
        search.report(state)
    for name in _first_placers(search):
        if incumbent.left_s <= 0 or (incumbent.best is not None and incumbent.spent_share > share):
            break
        found = incumbent.consider_placer(PLACERS.load(name), seed, share=START_SHARE)
        states += [] if found is None else _states_of(search, found)
    return states


def _first_placers(search: Search) -> tuple[str, ...]:
    problem = search.problem
    exact = (EXACT_PROGRAM,) if problem.contiguous or search.rules.model is not None else ()
    if is_load(problem) or problem.contiguous or problem.in_micro_batches:
        return (*PROGRAMS, *exact, *LISTS)
    return LISTS


def _states_of(search: Search, placement: Placement) -> list[State]:
    """A placement with the default priorities, and with its own where it has any."""
    states = [search.state_of(placement)]
    if search.ordered and placement.priority is not None and not placement.replicas:
        states.append(search.state_of(placement, priority=True))
    return states
