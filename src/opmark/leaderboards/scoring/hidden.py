"""Hidden instances: drawn from a seed of which only the hash is public until the track's version retires.

A recipe draws networks, clusters and memory limits, and keeps the instances in which a placer can win something. The
judges are placers without a clock, so the same seed, code and costs always give the same instances. Each instance is
then disguised, so that nothing in it can be looked up.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from opmark.core.errors import ContentError, PlacementError, SubmissionError, UsageError
from opmark.core.registry import Registry
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.drawn_network import MARK, drawn_families
from opmark.leaderboards.making.instances import Sources, problem_of
from opmark.leaderboards.making.recipe import FILE, Candidate, HiddenPart, Recipe, load_recipe
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.track import AT, REFERENCES, Track, read_references
from opmark.leaderboards.search.single import best_single_device

VARIABLE = "OPMARK_HIDDEN_SEED"
# These placers end by themselves; the budget only stops one that hangs.
JUDGES = ("heft", "peft", "etf", "m-topo", "gpipe")
_BUDGET_S = 600.0
# The number of draws per wanted instance after which a recipe is refused.
_TRIES = 20


class HiddenDrawer(ABC):
    """A way to draw hidden instances by the rules in `file`, which lies in a track's folder."""

    summary: ClassVar[str]
    file: ClassVar[str]

    @abstractmethod
    def problems(self, folder: Path, sources: Sources, seed: str) -> tuple[Problem, ...]:
        """The instances of `seed` by the rules in `folder`, disguised; none where they have no hidden part."""


DRAWERS: Registry[HiddenDrawer] = Registry("opmark.leaderboards.provisioning.drawers", "DRAWER", "drawer")


def hidden_track(track: Track) -> Track | None:
    """The track's hidden instances as a track, or None where their seed is not known; its folder is `hidden/`.

    Instances are drawn by the recipe; without a hidden part they are disguised copies of the track's problems.
    Raises `ContentError` where the seed does not match the hash in `track.yaml`.
    """
    seed, promised = os.environ.get(VARIABLE, ""), track.rules.hidden_seed_sha256
    if not seed or not promised:
        return None
    if seed_hash(seed) != promised:
        raise ContentError(
            f"{VARIABLE} is not the seed that this track committed to",
            where=f"{track.folder / 'track.yaml'}: hidden_seed_sha256",
        )
    name = track.name.partition(AT)[0]  # an older version keeps the draws that it had under this name
    return replace(track, folder=track.folder / "hidden", given=_problems(track, f"{name}/{seed}"))


def need_hidden(track: Track) -> Track:
    """`hidden_track`, but raises `UsageError` where the seed is not known."""
    found = hidden_track(track)
    if found is None:
        raise UsageError(
            f"the hidden instances of {track.name!r} are not known here",
            hint=f"set {VARIABLE}, and hidden_seed_sha256 in track.yaml to its SHA-256",
        )
    return found


def fresh_problems(track: Track, seed: str) -> tuple[Problem, ...]:
    """Instances of the track's hidden recipe from a seed of one's own; none where it has no such recipe.

    Raises `OpMarkError` where a predictor or a graph that they need is missing.
    """
    sources = Sources(workspace=Workspace(track.leaderboards.parent))
    for drawer in DRAWERS:
        if (track.folder / drawer.file).is_file():
            return drawer.problems(track.folder, sources, seed)
    recipe = load_recipe(track.folder) if (track.folder / FILE).is_file() else None
    if recipe is None or recipe.hidden is None:
        return ()
    return tuple(drawn_problems(recipe, recipe.hidden, sources, track.rules.objective, seed))


def hidden_problems(problems: Sequence[Problem], seed: str) -> tuple[Problem, ...]:
    """A disguised and rescaled copy of each problem, in random order."""
    generator = generator_of(seed)
    order = generator.permutation(len(problems)).tolist()
    width = len(str(len(problems)))
    return tuple(
        disguise(problems[place], f"hidden-{number:0{width}d}", generator) for number, place in enumerate(order, 1)
    )


def seed_hash(seed: str) -> str:
    """The SHA-256 that a track publishes of its seed, in hex."""
    return hashlib.sha256(seed.encode()).hexdigest()


def drawn_problems(recipe: Recipe, part: HiddenPart, sources: Sources, objective: str, seed: str) -> list[Problem]:
    """The hidden instances of `seed`, disguised, in the order in which they were drawn.

    Raises `ContentError` where too few draws can win something. A graph or a predictor that is missing is an error as
    in `problem_of`, because leaving out its instances would give another set.
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
    """True where a judge beats the best single device by `headroom`, or where no single device holds the problem."""
    try:
        _, single = best_single_device(problem)
    except PlacementError:
        return any(_cost(problem, name) is not None for name in JUDGES)
    costs = (_cost(problem, name) for name in JUDGES)
    return any(cost is not None and (single - cost) / cost >= headroom for cost in costs)


def generator_of(seed: str) -> np.random.Generator:
    """A random generator seeded with the hash of a text."""
    numbers = np.frombuffer(hashlib.sha256(seed.encode()).digest(), dtype="<u4")
    return np.random.default_rng(numbers.tolist())


def _problems(track: Track, seed: str) -> tuple[Problem, ...]:
    drawn = fresh_problems(track, seed)
    if not drawn:
        return hidden_problems(track.problems(), seed)
    known = read_references(track.folder / "hidden" / REFERENCES)
    return tuple(replace(problem, reference=known.get(problem.id)) for problem in drawn)


def _cost(problem: Problem, name: str) -> int | None:
    try:
        return attempt(problem, name, budget_s=_BUDGET_S).evaluation.cost
    except SubmissionError:  # a list placer that ignores memory may find no answer that fits
        return None


def _candidate(part: HiddenPart, number: int, generator: np.random.Generator) -> Candidate:
    """The candidate of one draw; every draw takes the same count of random numbers, used or not."""
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
