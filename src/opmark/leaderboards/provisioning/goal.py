"""The goals of a provisioning question, and how they compare answers."""

from dataclasses import dataclass

from opmark.core.errors import UsageError
from opmark.core.units import NS_PER_S, format_ns

S_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of an answer that goals judge: one pass's latency, the throughput, the price of all devices."""

    latency_ns: float
    samples_per_second: float
    price_per_hour: float

    @property
    def cost_per_million(self) -> float:
        """The money for a million samples at full load."""
        return self.price_per_hour / S_PER_HOUR / self.samples_per_second * 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """At most one limit. Its other side is what an answer is ranked by.

    A latency limit: the cheapest sample within it. A demand of samples per second: the cheapest hour that meets it. A
    budget per hour: the shortest latency within it. None: the cheapest sample.
    """

    latency_at_most_ns: float | None = None
    samples_per_second: float | None = None
    price_per_hour_at_most: float | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` unless there is at most one limit, and it is positive."""
        limits = (self.latency_at_most_ns, self.samples_per_second, self.price_per_hour_at_most)
        given = [limit for limit in limits if limit is not None]
        if len(given) > 1:
            raise UsageError("a goal has one limit", hint="give one of --at-most, --samples-per-second and --budget")
        if any(not limit > 0 for limit in given):
            raise UsageError(f"a goal's limit must be positive, not {given[0]:g}")

    @property
    def in_a_pipeline(self) -> bool:
        """True where samples follow one another through the devices, so that throughput counts."""
        return self.samples_per_second is not None

    def shortfall(self, figures: Figures) -> float:
        """The factor by which an answer misses the limit, at least 1; 1 where it meets the goal."""
        if self.latency_at_most_ns is not None:
            return max(1.0, figures.latency_ns / self.latency_at_most_ns)
        if self.samples_per_second is not None:
            return max(1.0, self.samples_per_second / figures.samples_per_second)
        if self.price_per_hour_at_most is not None:
            return max(1.0, figures.price_per_hour / self.price_per_hour_at_most)
        return 1.0

    def value(self, figures: Figures) -> float:
        """The quantity that the goal minimises: money per million samples, money per hour, or ns."""
        if self.price_per_hour_at_most is not None:
            return figures.latency_ns
        return figures.price_per_hour if self.in_a_pipeline else figures.cost_per_million

    def rank(self, figures: Figures) -> tuple[float, float, float]:
        """Answers in order: those that meet the goal first, by value, then by latency; the others by their shortfall.

        Where all hours that meet a demand cost the same, the higher throughput leads.
        """
        tie = -figures.samples_per_second if self.in_a_pipeline else figures.latency_ns
        return self.shortfall(figures), self.value(figures), tie

    @property
    def words(self) -> str:
        """The goal as words that complete a sentence."""
        if self.latency_at_most_ns is not None:
            return f"the cheapest sample in at most {format_ns(self.latency_at_most_ns)}"
        if self.samples_per_second is not None:
            return f"the cheapest hour for {self.samples_per_second:g} samples per second"
        if self.price_per_hour_at_most is not None:
            return f"the shortest latency for at most {self.price_per_hour_at_most:g} per hour"
        return "the cheapest sample"

    def value_words(self, figures: Figures, currency: str) -> str:
        """The quantity that the goal minimises, with its unit."""
        if self.price_per_hour_at_most is not None:
            return format_ns(figures.latency_ns)
        if self.in_a_pipeline:
            return f"{figures.price_per_hour:,.4g} {currency} per hour"
        return f"{figures.cost_per_million:,.4g} {currency} per million samples"


def samples_per_second(batch: int, ns: float) -> float:
    """The throughput of a batch every so many ns."""
    return batch * NS_PER_S / ns
