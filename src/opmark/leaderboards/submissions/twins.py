"""Twins of stored problems: the same network and cluster, drawn anew, so that a stored answer cannot be looked up.

A twin has new names in another order, times drawn within the predictors' error, and other borders between units: some
units are merged with a neighbour. A placement algorithm does not notice the difference; a table of answers does.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opmark.core.errors import OpMarkError
from opmark.leaderboards.making.disguise import RESCALED_BY, disguise
from opmark.leaderboards.making.merging import joined
from opmark.leaderboards.problem.fields import Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.hidden import generator_of
from opmark.leaderboards.scoring.robustness import drawn_factors, drawn_problem, has_intervals

# The share of units that are merged into a neighbour.
MERGED_SHARE = 0.1


def twin_problems(problems: Sequence[Problem], seed: str) -> tuple[Problem, ...]:
    """A twin of each problem, in random order; the same seed gives the same twins."""
    generator = generator_of(seed)
    width = len(str(len(problems)))
    order = generator.permutation(len(problems)).tolist()
    return tuple(
        twin(problems[place], f"twin-{number:0{width}d}", generator_of(f"{seed}/{problems[place].name}"))
        for number, place in enumerate(order, 1)
    )


def twin(problem: Problem, name: str, generator: np.random.Generator) -> Problem:
    """A twin of `problem`, called `name`, without intervals: its times are one draw of the predictors' errors."""
    drawn, rescale = problem, RESCALED_BY
    if has_intervals(problem):
        seed = int(generator.integers(2**63))
        drawn, rescale = drawn_problem(problem, drawn_factors(problem, draws=1, seed=seed)[0]), 0.0
    plain = replace(drawn, units=tuple(replace(unit, interval={}) for unit in drawn.units), reference=None)
    return disguise(cut_anew(plain, generator), name, generator, rescale=rescale)


def cut_anew(problem: Problem, generator: np.random.Generator) -> Problem:
    """Merge random pairs of neighbours, a tenth of the units; unchanged where a trace of requests names the units.

    A pair is an edge whose first unit has no other reader, or whose second unit has no other source. Merging such
    pairs, each unit in at most one of them, makes no cycle.
    """
    if problem.arrivals:
        return problem
    units = {unit.name: unit for unit in problem.units}
    readers: dict[str, set[str]] = {name: set() for name in units}
    sources: dict[str, set[str]] = {name: set() for name in units}
    for tensor in problem.tensors:
        for consumer in tensor.consumers if tensor.producer else ():
            readers[tensor.producer].add(consumer)
            sources[consumer].add(tensor.producer)
    edges = [
        (one, other)
        for one in units
        for other in sorted(readers[one])
        if (len(readers[one]) == 1 or len(sources[other]) == 1) and _may_merge(units[one], units[other])
    ]
    group = {name: name for name in units}
    taken: set[str] = set()
    for number in generator.permutation(len(edges)).tolist():
        one, other = edges[number]
        if taken & {one, other}:
            continue
        taken |= {one, other}
        group[other] = one
        if len(taken) >= 2 * MERGED_SHARE * len(units):
            break
    try:
        return joined(problem, group)
    except OpMarkError:  # for example, a merged unit that fits on no device
        return problem


def _may_merge(one: Unit, other: Unit) -> bool:
    """True where nothing that a unit says of itself forbids that both are one."""
    same = one.phase == other.phase and one.exec_ns.keys() == other.exec_ns.keys()
    free = not one.colocation or not other.colocation or one.colocation == other.colocation
    return same and free and not (one.split_ns or other.split_ns or one.splits or other.splits)
