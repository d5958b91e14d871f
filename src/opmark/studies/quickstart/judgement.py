"""The verdict on a quickstart, in one line: may its numbers be trusted, why not, and what helps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmark.core.measurements.estimate import median
from opmark.core.measurements.measurement import LOW_QUALITY, USABLE, Measurement

# Up to these limits a quickstart is good; up to the second ones usable: the share of measurements of low quality, and
# the median error of networks that no sample came from.
NOISE_LIMITS, ERROR_LIMITS = (0.1, 0.5), (0.1, 0.25)
GOOD, FAIR, NOISY, WRONG = "good", "usable", "too noisy", "too inaccurate"
_QUIET = "close other programs, see `opmark doctor`, and measure again in a new folder (--workspace)"
_LONGER = "give it more time in a new folder: opmark quickstart --workspace DIR --minutes 10"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickstartVerdict:
    """`word` is good, usable, too noisy or too inaccurate; `advice` is empty for a good one."""

    word: str
    why: str
    advice: str = ""

    @property
    def sentence(self) -> str:
        """The verdict as one line."""
        return f"Verdict: {self.word}. {self.why}." + (f" To do: {self.advice}." if self.advice else "")


def judge_quickstart(
    measurements: Mapping[str, Sequence[Measurement]], absolute_errors: Sequence[float]
) -> QuickstartVerdict:
    """The verdict on the kernels measured per target and the absolute errors of networks (fractions)."""
    shares = {target: _low_quality(rows) for target, rows in measurements.items()}
    noisiest = max(shares, key=lambda target: shares[target][0] / max(1, shares[target][1]))
    low, usable = shares[noisiest]
    noise, error = low / max(1, usable), median(absolute_errors)
    why = (
        f"{low:,} of {usable:,} kernels on {noisiest} are of low quality, "
        f"and the median error of unseen networks is {100 * error:.0f} %"
    )
    if noise > NOISE_LIMITS[1]:
        return QuickstartVerdict(word=NOISY, why=why, advice=_QUIET)
    if error > ERROR_LIMITS[1]:
        return QuickstartVerdict(word=WRONG, why=why, advice=_QUIET if noise > NOISE_LIMITS[0] else _LONGER)
    if noise > NOISE_LIMITS[0] or error > ERROR_LIMITS[0]:
        return QuickstartVerdict(word=FAIR, why=why, advice=_QUIET if noise > NOISE_LIMITS[0] else _LONGER)
    return QuickstartVerdict(word=GOOD, why=why)


def _low_quality(rows: Sequence[Measurement]) -> tuple[int, int]:
    """The number of measurements of low quality, and of all usable ones."""
    usable = [row.status for row in rows if row.status in USABLE]
    return usable.count(LOW_QUALITY), len(usable)
