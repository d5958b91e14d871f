"""The verdict on a quickstart, in one line: may its numbers be trusted, why not, and what helps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmark.core.measurements.estimate import median
from opmark.core.measurements.measurement import DOUBTFUL, ERROR_OF_COARSE, LOW_QUALITY, USABLE, Measurement

# Up to these limits a quickstart is good; up to the second ones fair; above them poor. The errors are those of networks
# that no sample came from: their median, and the worst.
MEDIAN_LIMITS, WORST_LIMITS = (0.05, 0.1), (0.15, 0.3)
# The share of doubtful measurements. Above the first limit, good predictions need a noise floor of networks below the
# good median; above the second one, no others are believed.
NOISE_LIMITS = (0.1, 0.5)
GOOD, FAIR, POOR, NOISY = "good", "fair", "poor", "too noisy"
# A median error below so many noise floors is mostly noise of this machine.
_FLOORS = 2
_LONGER = "give it more time in a new folder: opmark quickstart --workspace DIR --minutes 10"
# A few minutes are one look at most kernels, which even a quiet machine does not tell within 5 %.
_QUIET = f"close other programs (see `opmark doctor`), and {_LONGER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickstartVerdict:
    """`word` is good, fair, poor or too noisy; `advice` is empty for a good one.

    `floor` is the noise floor of networks: the error that no predictor can go below here, None where unknown.
    """

    word: str
    why: str
    advice: str = ""
    floor: float | None = None

    @property
    def sentence(self) -> str:
        """The verdict as one line."""
        return f"Verdict: {self.word}. {self.why}." + (f" To do: {self.advice}." if self.advice else "")


def judge_quickstart(
    measurements: Mapping[str, Sequence[Measurement]],
    absolute_errors: Sequence[float],
    floors: Sequence[float | None] = (),
) -> QuickstartVerdict:
    """The verdict on the kernels measured per target, and on absolute errors of networks (fractions).

    `floors` are the noise floors of networks, one per target; the largest counts.
    """
    shares = {target: _doubtful(rows) for target, rows in measurements.items()}
    noisiest = max(shares, key=lambda target: shares[target][0] / max(1, shares[target][1]))
    doubtful, usable = shares[noisiest]
    noise = doubtful / max(1, usable)
    error, worst = median(absolute_errors), max(absolute_errors)
    floor = max((one for one in floors if one is not None), default=None)
    word = _word(noise, error, worst, floor)
    return QuickstartVerdict(
        word=word,
        why=f"{_reason(error, worst, floor)}; {doubtful:,} of {usable:,} kernels on {noisiest} are doubtful "
        f"(standard error above {100 * ERROR_OF_COARSE:.0f} %)",
        advice="" if word == GOOD else _QUIET if _is_noise(noise, error, floor) else _LONGER,
        floor=floor,
    )


def _word(noise: float, error: float, worst: float, floor: float | None) -> str:
    if error <= MEDIAN_LIMITS[0] and worst <= WORST_LIMITS[0]:
        # Sums over many kernels are good where single ones are doubtful, if the machine tells whole networks as surely.
        is_sure = noise <= NOISE_LIMITS[0] or (floor is not None and floor <= MEDIAN_LIMITS[0])
        return GOOD if is_sure else FAIR
    if noise > NOISE_LIMITS[1]:
        return NOISY
    return POOR if error > MEDIAN_LIMITS[1] or worst > WORST_LIMITS[1] else FAIR


def _is_noise(noise: float, error: float, floor: float | None) -> bool:
    """True where a quieter machine helps more than a longer run."""
    return noise > NOISE_LIMITS[0] or (floor is not None and error <= _FLOORS * floor)


def _reason(error: float, worst: float, floor: float | None) -> str:
    said = (
        f"Unseen networks are {100 * error:.1f} % off in the median, {100 * worst:.0f} % at worst "
        f"(good: {100 * MEDIAN_LIMITS[0]:.0f} and {100 * WORST_LIMITS[0]:.0f} %)"
    )
    return said if floor is None else f"{said}; this machine tells a network within {100 * floor:.1f} %"


def _doubtful(rows: Sequence[Measurement]) -> tuple[int, int]:
    """The number of doubtful measurements, and of all usable ones."""
    usable = [row.status for row in rows if row.status in USABLE]
    return sum(status in {DOUBTFUL, LOW_QUALITY} for status in usable), len(usable)
