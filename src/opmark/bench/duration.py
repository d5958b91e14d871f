"""How long measuring a plan will take, by the paces that collections on two virtual cores of an EPYC recorded."""

from dataclasses import dataclass

from opmark.bench.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Kernels a second, on a machine that is busy and on one that is calm, and seconds a network."""

    busy_kernels_per_s: float
    calm_kernels_per_s: float
    network_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """From `low_s` to `high_s` seconds; `budgeted` where the suite's own budget ends it before."""

    low_s: float
    high_s: float
    budgeted: bool
    assumes: str


# full: 5,984 kernels and 241 networks of the first release; quick: quickstarts with 885 and 1,885 kernels.
PACES = {
    "full": Pace(busy_kernels_per_s=1.8, calm_kernels_per_s=3.0, network_s=4.0),
    "quick": Pace(busy_kernels_per_s=6.0, calm_kernels_per_s=9.0, network_s=1.0),
}


def duration(plan: Plan) -> Duration:
    """The time that the trials of `plan` take at the recorded pace of its quality, no longer than its budget."""
    pace = PACES[plan.suite.quality]
    kernels, networks_s = len(plan.kernels), len(plan.networks) * pace.network_s
    low, high = (kernels / rate + networks_s for rate in (pace.calm_kernels_per_s, pace.busy_kernels_per_s))
    budget = plan.suite.budget_s
    assumes = (
        f"{pace.busy_kernels_per_s:g} to {pace.calm_kernels_per_s:g} kernels a second and {pace.network_s:g} s a "
        f"network, as recorded at quality {plan.suite.quality} on two virtual cores; large kernels and slow machines "
        "take longer"
    )
    most = high if budget is None else budget
    return Duration(low_s=min(low, most), high_s=min(high, most), budgeted=most < high, assumes=assumes)
