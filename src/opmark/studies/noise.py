"""How noisy this machine is right now: a fixed piece of work, sampled the way kernels are."""

from collections.abc import Sequence
from dataclasses import dataclass

from opmark.bench.backend import Prepared
from opmark.bench.scheduling import cpu_pressure
from opmark.bench.timer import Timer

SAMPLE_NS = 300_000
WARM_UP_NS = 20_000_000
# Sleep between samples, so that they see the machine at many moments and leave it to others meanwhile.
PAUSE_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What was seen in `samples` samples of about 0.3 ms.

    `clean_fraction` is the share without an involuntary context switch, None where the system does not count them.
    `median_excess` and `p90_excess` are how far those quantiles of *all* samples lie above the 10th percentile of the
    clean ones; `pressure` is the percentage of recent time in which something waited for a processor.
    """

    samples: int
    clean_fraction: float | None
    median_excess: float
    p90_excess: float
    pressure: float | None


def measure_noise(work: Prepared, timer: Timer, *, seconds: float = 2.0) -> Noise:
    """Call `work` over and over for `seconds` and say how much its time varies."""
    calls = _calls_per_sample(work, timer)
    end_ns = timer.now_ns() + int(seconds * 1e9)
    took: list[float] = []
    clean: list[float] = []
    while timer.now_ns() < end_ns or len(took) < 10:
        before = timer.preemptions() if timer.preemptions else 0
        start_ns = timer.now_ns()
        for _ in range(calls):
            work.call()
        per_call_ns = (timer.now_ns() - start_ns) / calls
        took.append(per_call_ns)
        if timer.preemptions is None or timer.preemptions() == before:
            clean.append(per_call_ns)
        timer.sleep(PAUSE_S)
        work.call()  # the first call after a sleep finds cold caches
    floor = _quantile(clean or took, 0.1)
    return Noise(
        samples=len(took),
        clean_fraction=None if timer.preemptions is None else len(clean) / len(took),
        median_excess=_quantile(took, 0.5) / floor - 1,
        p90_excess=_quantile(took, 0.9) / floor - 1,
        pressure=cpu_pressure(),
    )


def _calls_per_sample(work: Prepared, timer: Timer) -> int:
    start_ns = timer.now_ns()
    fastest: float = float("inf")
    while True:
        before_ns = timer.now_ns()
        work.call()
        now_ns = timer.now_ns()
        fastest = min(fastest, now_ns - before_ns)
        if now_ns - start_ns >= WARM_UP_NS:
            return max(1, round(SAMPLE_NS / max(fastest, 1)))


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
