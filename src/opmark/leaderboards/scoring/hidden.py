"""Hidden instances: made from a seed that only its hash is known of until the track's version retires."""

import hashlib
import os
from dataclasses import replace

from opmark.core.errors import ContentError, UsageError
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.making.recipe import FILE, load_recipe
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.hidden_draw import drawn_problems, generator_of
from opmark.leaderboards.scoring.track import REFERENCES, Track, read_references

VARIABLE = "OPMARK_HIDDEN_SEED"


def hidden_track(track: Track) -> Track | None:
    """The track's hidden half, or None where its seed is not known here; its answers lie in `hidden/`.

    Its instances are drawn as the recipe says; where none says so, they are disguised copies of the others.
    Raises `ContentError` where the seed is not the one that `track.yaml` commits to.
    """
    seed, promised = os.environ.get(VARIABLE, ""), track.rules.hidden_seed_sha256
    if not seed or not promised:
        return None
    if seed_hash(seed) != promised:
        raise ContentError(
            f"{VARIABLE} is not the seed that this track committed to",
            where=f"{track.folder / 'track.yaml'}: hidden_seed_sha256",
        )
    return replace(track, folder=track.folder / "hidden", given=_problems(track, f"{track.name}/{seed}"))


def need_hidden(track: Track) -> Track:
    """The track's hidden half. Raises `UsageError` where its seed is not known, `ContentError` where it is wrong."""
    found = hidden_track(track)
    if found is None:
        raise UsageError(
            f"the hidden instances of {track.name!r} are not known here",
            hint=f"set {VARIABLE}, and hidden_seed_sha256 in track.yaml to its SHA-256",
        )
    return found


def hidden_problems(problems: tuple[Problem, ...], seed: str) -> tuple[Problem, ...]:
    """A disguised, rescaled copy of every problem, in an order that tells nothing."""
    generator = generator_of(seed)
    order = generator.permutation(len(problems)).tolist()
    width = len(str(len(problems)))
    return tuple(
        disguise(problems[place], f"hidden-{number:0{width}d}", generator) for number, place in enumerate(order, 1)
    )


def _problems(track: Track, seed: str) -> tuple[Problem, ...]:
    recipe = load_recipe(track.folder) if (track.folder / FILE).is_file() else None
    if recipe is None or recipe.hidden is None:
        return hidden_problems(track.problems(), seed)
    sources = Sources(workspace=Workspace(track.folder.parent.parent))
    drawn = drawn_problems(recipe, recipe.hidden, sources, track.rules.objective, seed)
    known = read_references(track.folder / "hidden" / REFERENCES)
    return tuple(replace(problem, reference=known.get(problem.id)) for problem in drawn)


def seed_hash(seed: str) -> str:
    """What a track commits to, in hex."""
    return hashlib.sha256(seed.encode()).hexdigest()
