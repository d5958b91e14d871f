"""Hidden instances drawn from a seed: networks of families that no other split has, clusters and memories by chance.

What is kept leaves something to win, as seen by placers that no clock decides: the same seed, code and costs always
give the same instances. Each is then disguised, so that nothing of it can be looked up.
"""

import hashlib
from dataclasses import replace

import numpy as np

from opmark.core.errors import ContentError, PlacementError, SubmissionError
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.drawn_network import MARK, drawn_families
from opmark.leaderboards.making.instances import Sources, problem_of
from opmark.leaderboards.making.recipe import Candidate, HiddenPart, Recipe
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.single import best_single_device

# They end by themselves; the budget only keeps a fault from lasting for ever.
JUDGES = ("heft", "peft", "etf", "m-topo", "gpipe")
_BUDGET_S = 600.0
# After so many candidates per wanted instance a recipe is found to leave nothing to win.
_TRIES = 20


def drawn_problems(recipe: Recipe, part: HiddenPart, sources: Sources, objective: str, seed: str) -> list[Problem]:
    """The hidden instances of `seed`, disguised, in the order they were drawn.

    Raises `ContentError` where the recipe leaves nothing to win, and as `problem_of` does where a graph or a predictor
    cannot be had: a part of the instances would be another set.
    """
    generator = generator_of(seed)
    drawn = replace(recipe, seed=int(generator.integers(2**63)))
    width = len(str(part.count))
    titles: set[str] = set()
    kept: list[Problem] = []
    for number in range(1, _TRIES * part.count + 1):
        candidate = _candidate(part, number, generator)
        if candidate.title in titles:
            continue
        titles.add(candidate.title)
        problem = problem_of(candidate, drawn, sources, objective)
        if has_something_to_win(problem, recipe.headroom_at_least):
            name = f"hidden-{len(kept) + 1:0{width}d}"
            kept.append(disguise(problem, name, generator_of(f"{seed}/{number}")))
        if len(kept) == part.count:
            return kept
    raise ContentError(
        f"{_TRIES * part.count} draws gave {len(kept)} instances with something to win, not {part.count}",
        where="recipe.yaml: hidden",
    )


def has_something_to_win(problem: Problem, headroom: float) -> bool:
    """Whether a placer beats the best single device by `headroom`, or no single device holds the problem."""
    try:
        _, single = best_single_device(problem)
    except PlacementError:
        return any(_cost(problem, name) is not None for name in JUDGES)
    costs = (_cost(problem, name) for name in JUDGES)
    return any(cost is not None and (single - cost) / cost >= headroom for cost in costs)


def generator_of(seed: str) -> np.random.Generator:
    """A generator that the words of a seed decide."""
    numbers = np.frombuffer(hashlib.sha256(seed.encode()).digest(), dtype="<u4")
    return np.random.default_rng(numbers.tolist())


def _cost(problem: Problem, name: str) -> int | None:
    try:
        return attempt(problem, name, budget_s=_BUDGET_S).evaluation.cost
    except SubmissionError:  # a list placer that knows no memory may well find nothing that fits
        return None


def _candidate(part: HiddenPart, number: int, generator: np.random.Generator) -> Candidate:
    """The candidate of one draw; every draw takes the same numbers from the generator, used or not."""
    first, second, batch, cluster = generator.random(4).tolist()
    pair, tight, contiguous, low = generator.random(4).tolist()
    names = list(part.models)
    one = names[int(first * len(names))]
    batches = part.models[one]
    size = batches[int(batch * len(batches))] if batches else 0
    others = [name for name in names if name != one and (size in part.models[name] if size else not part.models[name])]
    models = [one]
    if others and pair < part.pairs:
        models.append(others[int(second * len(others))])
    smallest, largest = part.memory_shares
    share = round(smallest + low * (largest - smallest), 2)
    return Candidate(
        models=tuple(f"{name}{MARK}{number}" if name in drawn_families() else name for name in models),
        cluster=part.clusters[int(cluster * len(part.clusters))],
        dimensions={"batch": size} if size else {},
        memory_share=share if tight < part.tight else 0.0,
        contiguous=contiguous < part.contiguous,
    )
