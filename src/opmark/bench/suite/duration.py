"""The time that a plan takes, at the paces that were recorded."""

from dataclasses import dataclass

from opmark.bench.suite.plan import Plan
from opmark.models.cuda_graph import CUDA_RUNTIME


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Trials per second in the slower and the faster of the recorded runs; `of` says which trials and which runs."""

    slow_per_s: float
    fast_per_s: float
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedDuration:
    """From `low_s` to `high_s` seconds; `budgeted` if the budget of the suite ends the run before."""

    low_s: float
    high_s: float
    budgeted: bool
    assumes: str


_TOGETHER = "trials a second, kernels and networks together, as recorded at quality"
# full: first looks at 7,977 trials in 42 minutes (amd-25-1-1-2vcpu-l3-32m 0.1.0) and at 6,857 in 21 minutes
# (amd-25-17-1-2vcpu-l3-32m 0.2.0). quick: quickstarts of 885 kernels in 156 s and of 1,885 kernels in 299 s, including
# training and ranking.
PACES = {
    "full": Pace(slow_per_s=3.2, fast_per_s=5.4, of=f"{_TOGETHER} full"),
    "quick": Pace(slow_per_s=5.7, fast_per_s=6.3, of=f"{_TOGETHER} quick"),
}
# First looks at 500 whole networks, by the times in the released journals of two cloud machines: 0.15 (`full-size`, up
# to half a second each) to 1.64 a second (`full`). No quick run without kernels is recorded.
PACE_OF_NETWORKS = Pace(slow_per_s=0.15, fast_per_s=1.6, of="networks a second, as recorded at quality full")
# On an H100: looks at 63 networks in 102 s and first looks at 3,816 kernels in 296 s (nvidia-h100-80gb-hbm3 1.0.0).
PACE_OF_GPU = Pace(slow_per_s=9.7, fast_per_s=12.9, of="trials a second, as recorded on one GPU")


def estimated_duration(plan: Plan) -> EstimatedDuration:
    """The time of `plan` at the recorded pace of its quality, at most its budget.

    A look at a whole network takes longer than one at a kernel: a plan of networks alone has a pace of its own, and so
    has one for a GPU.
    """
    on_gpu = all(target.backend == CUDA_RUNTIME for target in plan.targets)
    pace = PACES[plan.suite.quality] if plan.kernels else PACE_OF_NETWORKS
    machine = " on two virtual cores"
    if on_gpu:
        pace, machine = PACE_OF_GPU, ""
    low, high = (len(plan.trials) / rate for rate in (pace.fast_per_s, pace.slow_per_s))
    budget = plan.suite.budget_s
    large = "kernels" if plan.kernels else "networks"
    assumes = (
        f"{pace.slow_per_s:g} to {pace.fast_per_s:g} {pace.of}{machine}; large {large} and slow machines take longer"
    )
    most = high if budget is None else budget
    return EstimatedDuration(low_s=min(low, most), high_s=min(high, most), budgeted=most < high, assumes=assumes)
