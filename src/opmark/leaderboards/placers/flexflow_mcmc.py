"""FlexFlow's search: a Metropolis chain at one temperature over the device of one class at a time.

Jia, Zaharia, Aiken, "Beyond data and model parallelism for deep neural networks", MLSys 2019, section 6.2: a random
operation gets a random configuration, accepted with min(1, exp(β(cost − new cost))); a chain starts from an expert's
placement or a random one, and ends when half of its time brought nothing.
"""

import numpy as np

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import Annealer, Cooling, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.states import Search, State

# 1/β as a share of the cost.
TEMPERATURE = 0.002
COOLING = Cooling(temperature_first=TEMPERATURE, temperature_last=TEMPERATURE, reorder=0.0, regions=False, guided=False)
PER_GROUP, ROUNDS_AT_MOST = 500, 8
BUDGET_SHARE = 0.9
# Of the budget, for replicas in the end, where a problem allows them.
REPLICAS_SHARE = 0.15


class FlexFlowMcmc(Placer):
    """Two chains: from the best single device (or a filling by memory), and from random devices."""

    summary = "Metropolis chains over one class's device at a time (FlexFlow, MLSys'19)"

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement seen, or data parallelism where the problem allows replicas and that is cheaper."""
        incumbent = Incumbent(problem, "flexflow-mcmc", budget_s * BUDGET_SHARE)
        search = Search(problem, incumbent)
        expert = min(search.starts(starting_rows(problem, search.groups)), key=lambda state: state.energy)
        search.report(expert)
        draw = np.random.default_rng(seed)
        drawn = np.array([draw.choice(np.flatnonzero(row)) for row in search.groups.allowed])
        annealer = Annealer(search, seed)
        begun_s = incumbent.left_s
        last = REPLICAS_SHARE if problem.replication else 0.0
        for share, state in ((0.5, expert), (last, search.state(drawn))):
            _chain(annealer, state, begun_s * share)
        if problem.replication:
            replicated(problem, incumbent)
        return incumbent.solution()


def _chain(annealer: Annealer, state: State, until_s: float) -> None:
    """Rounds of moves; as many again as there were so far must improve the chain's best."""
    search, incumbent = annealer.search, annealer.search.incumbent
    length = PER_GROUP * (search.groups.count + 10)
    search.report(state)
    spent, best_at = 0, 0
    while search.movable and incumbent.left_s > until_s and (spent == 0 or best_at * 2 >= spent):
        if spent >= ROUNDS_AT_MOST * length:
            return
        found = annealer.run(state, length, COOLING, stop=lambda: incumbent.left_s <= until_s)
        spent += length
        if found.merit < state.merit:
            best_at = spent
        state = found


PLACER = FlexFlowMcmc()
