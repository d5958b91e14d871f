"""Which rules a simulation follows: opsim 1, or a published model that it can reproduce."""

from dataclasses import dataclass

from opmark.core.registry import unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`contention` makes a link serve one transfer at a time; without it ports are infinite and copies never block."""

    name: str
    summary: str
    contention: bool = True


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(name="opsim1", summary="the rules of this leaderboard"),
        Profile(name="contention_free", summary="the model of HEFT and PEFT: infinite ports", contention=False),
    )
}
OPSIM1 = PROFILES["opsim1"]


def profile_named(name: str) -> Profile:
    """The profile called `name`. Raises `UnknownNameError`."""
    if name not in PROFILES:
        raise unknown_name("profile", name, PROFILES)
    return PROFILES[name]
