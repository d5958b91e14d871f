"""Which samples of a GPU to keep: those taken at its usual clock, unless too many were not."""

from collections.abc import Sequence

from opmark.core.estimate import median

# At most so many samples are discarded for their clock; beyond that all are kept and the row is flagged.
MOST_DISCARDED = 0.2
# A clock within this part of the usual one is the usual one: cards step by 15 MHz of about 1,500.
_TOLERANCE = 0.015


def at_usual_clock(clocks_mhz: Sequence[float]) -> tuple[bool, ...]:
    """Which samples ran within 1.5 % of the median clock; all of them where more than a fifth did not."""
    if not clocks_mhz:
        return ()
    usual = median(clocks_mhz)
    kept = tuple(abs(mhz - usual) <= _TOLERANCE * usual for mhz in clocks_mhz)
    if kept.count(False) > MOST_DISCARDED * len(kept):
        return (True,) * len(kept)
    return kept


def unsteady_share(clocks_mhz: Sequence[float]) -> float:
    """The part of samples whose clock is more than 1.5 % off the median; 0 where no clock is known."""
    if not clocks_mhz:
        return 0.0
    usual = median(clocks_mhz)
    return sum(abs(mhz - usual) > _TOLERANCE * usual for mhz in clocks_mhz) / len(clocks_mhz)
