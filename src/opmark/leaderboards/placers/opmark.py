"""OpMark's own placer: starts from published algorithms, then a portfolio of annealing runs.

1. Starts: single devices, a filling by memory, and the answers of other placers: list schedules, balanced stages, and
   dynamic programs where loads count or parts must be contiguous.
2. Where there are few placements, all of them.
3. Annealing in rounds that grow longer, from the best states so far: `search.portfolio`.
4. Idle devices as replicas, where the problem allows them.

The search ends early at a proven lower bound.
"""

from opmark.leaderboards.bounds.bounds import cheap_lower_bound
from opmark.leaderboards.bounds.relaxation import is_load
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import Annealer, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.portfolio import anneal_in_rounds, enumerated
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.states import Search, State

# The rest of the budget is for handing the answer over.
SEARCH_SHARE = 0.95
LISTS = ("heft", "m-topo", "peft", "fastt", "etf", "sct", "gpipe", "dapple")
PROGRAMS = ("pipedream", "dnn-partitioning-dp-linear")
# Only worth its time where parts must be contiguous, or where a published model judges.
EXACT_PROGRAM = "dnn-partitioning-dp"
# A placer gets this share of the time left; after this share of the whole time no other one starts.
START_SHARE, STARTS_SHARE = 0.15, 0.25
# Of the budget, for replicas in the end, where a problem allows them.
REPLICAS_SHARE = 0.15


class OpMark(Placer):
    """Anytime, and never worse than the placers that it starts from."""

    summary = "list schedules or dynamic programs, then a portfolio of compiled annealing runs; small ones exactly"

    def prepare(self) -> None:
        """Compile the search and the programs it starts from."""
        warm_up()
        for name in (*PROGRAMS, EXACT_PROGRAM):
            PLACERS.load(name).prepare()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement found; the same for a seed where the budget does not cut the search short."""
        incumbent = Incumbent(problem, "opmark", budget_s * SEARCH_SHARE)
        search = Search(problem, incumbent)
        states = _starts(search, seed)
        bound = cheap_lower_bound(problem)
        reserved_s = REPLICAS_SHARE * incumbent.left_s if problem.replication else 0.0
        if problem.replication:
            replicated(problem, incumbent)

        def done() -> bool:
            proved = incumbent.value is not None and incumbent.value <= bound
            return proved or incumbent.left_s < reserved_s

        if search.movable and not done():
            states += enumerated(search)
            anneal_in_rounds(Annealer(search, seed), states, seed, done)
        if problem.replication:
            replicated(problem, incumbent)
        return incumbent.solution()


PLACER = OpMark()


def _starts(search: Search, seed: int) -> list[State]:
    """The states that the search starts from; the incumbent knows all of them."""
    problem, incumbent = search.problem, search.incumbent
    states = search.starts(starting_rows(problem, search.groups))
    for state in sorted(states, key=lambda one: one.merit)[:2]:
        search.report(state)
    for name in _first_placers(search):
        if incumbent.left_s <= 0 or (incumbent.best is not None and incumbent.spent_share > STARTS_SHARE):
            break
        found = incumbent.consider_placer(PLACERS.load(name), seed, share=START_SHARE)
        states += [] if found is None else _states_of(search, found)
    return states


def _first_placers(search: Search) -> tuple[str, ...]:
    problem = search.problem
    exact = (EXACT_PROGRAM,) if problem.contiguous or search.rules.model is not None else ()
    if is_load(problem) or problem.contiguous:
        return (*PROGRAMS, *exact, *LISTS)
    return LISTS


def _states_of(search: Search, placement: Placement) -> list[State]:
    """A placement with the default priorities, and with its own where it has any."""
    states = [search.state_of(placement)]
    if search.ordered and placement.priority is not None and not placement.replicas:
        states.append(search.state_of(placement, priority=True))
    return states
