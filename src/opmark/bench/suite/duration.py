"""The time that a plan takes, at the paces that were recorded."""

from dataclasses import dataclass

from opmark.bench.suite.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Trials per second, kernels and networks together, in the slower and the faster of two recorded runs."""

    slow_per_s: float
    fast_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedDuration:
    """From `low_s` to `high_s` seconds; `budgeted` if the budget of the suite ends the run before."""

    low_s: float
    high_s: float
    budgeted: bool
    assumes: str


# full: 6,225 trials of the first release in 70 minutes, and benchmarks/throughput.py on a calm host. quick: quickstarts
# of 885 kernels in 156 s and of 1,885 kernels in 299 s, including training and ranking.
PACES = {"full": Pace(slow_per_s=1.5, fast_per_s=3.0), "quick": Pace(slow_per_s=5.7, fast_per_s=6.3)}


def estimated_duration(plan: Plan) -> EstimatedDuration:
    """The time of `plan` at the recorded pace of its quality, at most its budget."""
    pace = PACES[plan.suite.quality]
    low, high = (len(plan.trials) / rate for rate in (pace.fast_per_s, pace.slow_per_s))
    budget = plan.suite.budget_s
    assumes = (
        f"{pace.slow_per_s:g} to {pace.fast_per_s:g} trials a second, kernels and networks together, as recorded at "
        f"quality {plan.suite.quality} on two virtual cores; large kernels and slow machines take longer"
    )
    most = high if budget is None else budget
    return EstimatedDuration(low_s=min(low, most), high_s=min(high, most), budgeted=most < high, assumes=assumes)
