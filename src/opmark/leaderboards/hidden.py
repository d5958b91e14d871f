"""Hidden instances: made from a seed that only its hash is known of until the track's version retires."""

import hashlib
import os
from dataclasses import replace

import numpy as np

from opmark.core.errors import ContentError, UsageError
from opmark.leaderboards.disguise import disguise
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.track import Track

VARIABLE = "OPMARK_HIDDEN_SEED"


def hidden_track(track: Track) -> Track | None:
    """The track's hidden half, or None where its seed is not known here; its answers lie in `hidden/`.

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
    return replace(
        track, folder=track.folder / "hidden", given=hidden_problems(track.problems(), f"{track.name}/{seed}")
    )


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
    numbers = np.frombuffer(hashlib.sha256(seed.encode()).digest(), dtype=np.uint32)
    generator = np.random.default_rng(numbers.tolist())
    order = generator.permutation(len(problems)).tolist()
    width = len(str(len(problems)))
    return tuple(
        disguise(problems[place], f"hidden-{number:0{width}d}", generator) for number, place in enumerate(order, 1)
    )


def seed_hash(seed: str) -> str:
    """What a track commits to, in hex."""
    return hashlib.sha256(seed.encode()).hexdigest()
