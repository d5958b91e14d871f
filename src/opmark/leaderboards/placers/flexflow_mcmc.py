"""FlexFlow's search: a Metropolis chain at one temperature over the configuration of one operation at a time.

Jia, Zaharia, Aiken, "Beyond data and model parallelism for deep neural networks", MLSys 2019. Section 4: a
configuration divides an operation along samples, attributes (rows) or parameters (channels), and gives every part a
device. Section 6.2: a random operation gets a random configuration, accepted with min(1, exp(β(cost − new cost))); a
chain starts from an expert's placement or a random one, and ends when half of its time brought nothing. Where no unit
offers splits, a configuration is a device.
"""

from dataclasses import dataclass

import numpy as np

from opmark.leaderboards.problem.decisions.splitting import cut_name, join_name, part_name
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution, SplitChoice
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import Annealer, Cooling, warm_up
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.split_answers import SplitAnswers, ways
from opmark.leaderboards.search.states import Search, State
from opmark.leaderboards.simulator.simulate import simulate_many

# 1/β as a share of the cost.
TEMPERATURE = 0.002
COOLING = Cooling(temperature_first=TEMPERATURE, temperature_last=TEMPERATURE, reorder=0.0, regions=False, guided=False)
PER_GROUP, ROUNDS_AT_MOST = 500, 8
# Steps over splits cost more: each compiles the problem that it leads to.
PER_GROUP_WITH_SPLITS = 100
BUDGET_SHARE = 0.9
# Of the budget, for replicas in the end, where a problem allows them.
REPLICAS_SHARE = 0.15


class FlexFlowMcmc(Placer):
    """Two chains: from the best single device (or a filling by memory), and from random devices."""

    summary = "Metropolis chains over one operation's split and devices at a time (FlexFlow, MLSys'19)"
    paper = Placer.cites(
        "Jia, Zaharia, Aiken: Beyond data and model parallelism for deep neural networks, MLSys",
        2019,
        link="https://arxiv.org/abs/1807.05358",
        code="https://github.com/flexflow/FlexFlow",
    )

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest answer seen, or data parallelism where the problem allows replicas and that is cheaper."""
        offered = ways(problem)
        if offered and not problem.replication and not problem.contiguous:
            return _SplitChains(problem, offered, budget_s, seed).solution()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """Every operation's configuration: the split ones, and a device for every unit and for every part."""

    splits: dict[str, SplitChoice]
    device: dict[str, int]

    def row(self, posed: Problem) -> Integers:
        """A device per unit of the split problem."""
        return np.array([self.device[unit.name] for unit in posed.units], dtype=np.int64)


class _SplitChains:
    """Both chains where units can be split; every proposal is judged on the problem that its splits lead to."""

    def __init__(self, problem: Problem, offered: dict[str, list[SplitChoice]], budget_s: float, seed: int) -> None:
        self.problem, self.offered = problem, offered
        self.answers = SplitAnswers(problem, "flexflow-mcmc", budget_s * BUDGET_SHARE)
        self.draw = np.random.default_rng(seed)
        self.groups = groups_of(problem)
        self.names = [unit.name for unit in problem.units]
        self.kinds = [device.type for device in problem.cluster.devices]

    def solution(self) -> Solution:
        """The cheapest answer of both chains."""
        groups, begun_s = self.groups, self.answers.left_s
        rows = starting_rows(self.problem, groups)
        expert = groups.spread(rows[simulate_many(self.problem, groups.spread(rows)).argmin()])
        scattered = groups.spread([self.draw.choice(np.flatnonzero(row)) for row in groups.allowed])
        self.answers.consider({}, Placement(device=expert))
        for share, device in ((0.5, expert), (0.0, scattered)):
            start = Configurations(splits={}, device=dict(zip(self.names, device.tolist(), strict=True)))
            self._run(start, begun_s * share)
        return self.answers.solution()

    def _run(self, state: Configurations, until_s: float) -> None:
        """One chain; a placement that does not fit has a cost above all others."""
        cost = self._cost(state)
        best, best_at, step = cost, 0, 0
        length = PER_GROUP_WITH_SPLITS * (self.groups.count + 10)
        while step < ROUNDS_AT_MOST * length and (step < length or best_at * 2 >= step):
            if self.answers.left_s <= until_s:
                return
            step += 1
            changed = self._proposed(state)
            found = self._cost(changed)
            if found <= cost or self.draw.random() < np.exp((cost - found) / max(1.0, TEMPERATURE * cost)):
                state, cost = changed, found
            if found < best:
                best, best_at = found, step
                posed = self.answers.posed(changed.splits)
                self.answers.consider(changed.splits, Placement(device=changed.row(posed)))

    def _cost(self, state: Configurations) -> float:
        posed = self.answers.posed(state.splits)
        return float(simulate_many(posed, state.row(posed)[None, :])[0])

    def _proposed(self, state: Configurations) -> Configurations:
        """A new configuration of one operation: each split equally likely, and each device of every part."""
        members = self.groups.members[int(self.draw.integers(self.groups.count))]
        names = [self.names[unit] for unit in members]
        choices = [None, *self.offered.get(names[0], [])]
        chosen = choices[int(self.draw.integers(len(choices)))]
        splits = {name: choice for name, choice in state.splits.items() if name != names[0]}
        old = {*names, *_split_names(names[0], state.splits.get(names[0]))}
        device = {name: place for name, place in state.device.items() if name not in old}
        if chosen is None:
            able = np.flatnonzero(self.groups.allowed[self.groups.of_unit[members[0]]])
            device |= dict.fromkeys(names, int(self.draw.choice(able)))
        else:
            splits[names[0]] = chosen
        # Parts of this operation, and the join of a neighbour that had handed on part to part.
        for unit in self.answers.posed(splits).units:
            if unit.name not in device:
                places = [number for number, kind in enumerate(self.kinds) if kind in unit.exec_ns]
                device[unit.name] = int(self.draw.choice(places))
        return Configurations(splits=splits, device=device)


def _split_names(name: str, choice: SplitChoice | None) -> set[str]:
    if choice is None:
        return set()
    return {cut_name(name), join_name(name), *(part_name(name, number) for number in range(choice.parts))}


PLACER = FlexFlowMcmc()
