"""m-TOPO: fills devices in topological order, each up to an even share of the memory.

Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.1: the cap of a device is
total bytes / devices + the largest operator, and at most its memory.
"""

import numpy as np

from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import fill_by_memory


class MTopo(Placer):
    """A memory-balanced split of the topological order into one piece per device."""

    summary = "topological order cut into pieces of equal memory (Baechi, SoCC'20)"
    paper = Placer.cites(
        "Jeon et al.: Baechi: fast device placement of machine learning graphs, SoCC",
        2020,
        link="https://doi.org/10.1145/3419111.3421302",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the filling."""
        del budget_s, seed
        groups = groups_of(problem)
        memory = problem.arrays.device_memory_bytes
        share = int(groups.size_bytes.sum()) // len(memory) + int(groups.size_bytes.max())
        chosen = fill_by_memory(problem, groups, np.minimum(memory, share))
        return solution_of(problem, held_together(problem, Placement(device=groups.spread(chosen))), placer="m-topo")


PLACER = MTopo()
