"""Hidden pools: a network, a catalogue, counts, a goal and its factor, all drawn by the rules in `pools.yaml`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from opmark.core.errors import ContentError, PlacementError, SubmissionError
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.drawn_network import MARK, drawn_families
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.provisioning.pools import (
    FILE,
    HiddenPools,
    PoolCandidate,
    PoolRecipe,
    job_of_candidate,
    load_pool_recipe,
    pool_of,
)
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.hidden import HiddenDrawer, generator_of
from opmark.leaderboards.scoring.score_formulas import has_headroom
from opmark.leaderboards.search.single import best_single_device

# These placers choose devices and end by themselves; the budget only stops one that hangs.
JUDGES = ("marginal-gain", "sailor-stages", "ceer")
_BUDGET_S = 600.0
# The number of draws per wanted pool after which a recipe is refused.
_TRIES = 20


class PoolDrawer(HiddenDrawer):
    """A pool is kept where a judge meets its goal, and where a single device is not as good as the best judge."""

    summary = "pools: a network, a catalogue, counts of devices, a goal and its factor"
    file = FILE

    def problems(self, folder: Path, sources: Sources, seed: str) -> tuple[Problem, ...]:
        """The hidden pools of `seed`, disguised; none where the recipe has no hidden part.

        Raises `ContentError` where too few draws can win something, and as `pool_of` does.
        """
        recipe = load_pool_recipe(folder)
        part = recipe.hidden
        if part is None:
            return ()
        kept: list[Problem] = []
        jobs: dict[tuple[object, ...], Job] = {}
        width = len(str(part.count))
        for number, candidate in enumerate(drawn_candidates(part, seed), 1):
            key = candidate.job_key
            if key not in jobs:
                jobs[key] = job_of_candidate(candidate, recipe, sources)
            problem = pool_of(candidate, jobs[key])
            if _has_something_to_win(problem, recipe):
                name = f"hidden-{len(kept) + 1:0{width}d}"
                kept.append(disguise(problem, name, generator_of(f"{seed}/{number}")))
            if len(kept) == part.count:
                return tuple(kept)
        raise ContentError(
            f"{_TRIES * part.count} draws gave {len(kept)} pools with something to win, not {part.count}",
            where=f"{folder / FILE}: hidden",
        )


DRAWER = PoolDrawer()


def drawn_candidates(part: HiddenPools, seed: str) -> Iterator[PoolCandidate]:
    """The candidates of a seed, in order; every draw takes the same count of random numbers, used or not."""
    generator = generator_of(seed)
    titles: set[str] = set()
    for number in range(1, _TRIES * part.count + 1):
        candidate = _candidate(part, number, generator)
        if candidate.title not in titles:
            titles.add(candidate.title)
            yield candidate


def _candidate(part: HiddenPools, number: int, generator: np.random.Generator) -> PoolCandidate:
    model, batch, catalogue, goal, factor, tight, share = generator.random(7).tolist()
    counts = generator.random(max(map(len, part.available.values()))).tolist()
    names, catalogues, goals = list(part.models), list(part.available), list(part.factors)
    name = names[int(model * len(names))]
    batches = part.models[name]
    most = part.available[catalogues[int(catalogue * len(catalogues))]]
    drawn = {kind: round(share * limit) for (kind, limit), share in zip(most.items(), counts, strict=False)}
    if sum(count > 0 for count in drawn.values()) < 2:
        drawn = dict(most)  # a pool of one type asks for no choice
    chosen = goals[int(goal * len(goals))]
    low, high = part.factors[chosen]
    smallest, largest = part.memory_shares
    memory_share = round(smallest + share * (largest - smallest), 2) if tight < part.tight else 0.0
    return PoolCandidate(
        model=f"{name}{MARK}{number}" if name in drawn_families() else name,
        catalogue=catalogues[int(catalogue * len(catalogues))],
        available={kind: count for kind, count in drawn.items() if count},
        goal=chosen,
        factor=round(low + factor * (high - low), 2),
        batch=batches[int(batch * len(batches))] if batches else 0,
        memory_share=memory_share,
    )


def _has_something_to_win(problem: Problem, recipe: PoolRecipe) -> bool:
    found = []
    for name in JUDGES:
        try:
            found.append(attempt(problem, name, budget_s=_BUDGET_S, seed=recipe.seed).evaluation.cost)
        except SubmissionError:  # a judge that misses the goal
            continue
    if not found:
        return False
    try:
        _, single = best_single_device(problem)
    except PlacementError:
        return True
    return has_headroom(min(found), single)
