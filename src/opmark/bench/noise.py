"""How noisy this machine is right now, measured the way kernels are, and what to do about it."""

from dataclasses import dataclass

from opmark.bench.clock import Clock
from opmark.bench.protocol import FULL
from opmark.bench.scheduling import cpu_pressure, may_use_fifo
from opmark.bench.sentinel import processor_sentinels
from opmark.bench.timer import Timer, machine_timer
from opmark.core.estimate import label, median, variation

QUIET = "quiet"
_QUIET_SPREAD = 0.03
_QUIET_CLEAN = 0.8
_ROUND_SAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """`clean_fraction` of ordinary samples was not interrupted; spreads are of the sentinels' labels over rounds.

    `median_bias` is how far the median of all compute samples lies above the clean 10th percentile; `pressure` is
    the percentage of recent time in which something waited for a processor; `fifo` says whether timed bursts may
    run under real-time priority.
    """

    clean_fraction: float
    compute_spread: float
    memory_spread: float
    median_bias: float
    pressure: float | None
    fifo: bool
    verdict: str
    advice: str


def measure(seconds: float = 4.0, timer: Timer | None = None) -> Noise:
    """Run both sentinels in rounds for about `seconds`, on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return _measured(seconds, timer or machine_timer())


def _measured(seconds: float, timer: Timer) -> Noise:
    clock = Clock(timer=timer, protocol=FULL)
    sentinels = processor_sentinels()
    latency_ns = {name: clock.warm_up(item.call) for name, item in sentinels.items()}
    labels: dict[str, list[float]] = {name: [] for name in sentinels}
    clean: list[bool] = []
    compute: list[float] = []
    end_ns = timer.now_ns() + seconds * 1e9
    while timer.now_ns() < end_ns or len(labels["compute"]) < 3:
        for name, item in sentinels.items():
            samples = clock.take(item.call, latency_ns=latency_ns[name], samples=_ROUND_SAMPLES)
            quiet = [ns for ns, is_clean in zip(samples.ns, samples.clean, strict=True) if is_clean]
            labels[name].append(label(quiet or samples.ns))
            clean += samples.clean
            if name == "compute":
                compute += samples.ns
        timer.sleep(0.05)
    spreads = {name: variation(values) or 0.0 for name, values in labels.items()}
    return judged(
        clean_fraction=sum(clean) / len(clean),
        compute_spread=spreads["compute"],
        memory_spread=spreads["memory"],
        median_bias=median(compute) / min(labels["compute"]) - 1,
        pressure=cpu_pressure(),
        real_time=may_use_fifo(),
    )


def judged(
    *,
    clean_fraction: float,
    compute_spread: float,
    memory_spread: float,
    median_bias: float,
    pressure: float | None,
    real_time: bool,
) -> Noise:
    """These numbers with a verdict in words."""
    undisturbed = real_time or clean_fraction >= _QUIET_CLEAN
    steady = compute_spread <= _QUIET_SPREAD and memory_spread <= _QUIET_SPREAD
    if undisturbed and steady:
        verdict, advice = QUIET, "measure now"
    elif undisturbed and compute_spread <= _QUIET_SPREAD:
        verdict = "neighbours use the shared cache and memory"
        advice = "labels of small kernels are fine; expect rounds to be repeated, or wait for a quieter time"
    elif undisturbed:
        verdict = "the processor's speed itself varies"
        advice = "wait, or fix the clock frequency; sentinels will reject rounds meanwhile"
    else:
        verdict = "busy, and samples are interrupted"
        share = max(clean_fraction, 0.01)
        advice = (
            f"about {1 / share:.1f} times the samples are needed; "
            "stop other work, or allow real-time priority (CAP_SYS_NICE)"
        )
    return Noise(
        clean_fraction=clean_fraction,
        compute_spread=compute_spread,
        memory_spread=memory_spread,
        median_bias=median_bias,
        pressure=pressure,
        fifo=real_time,
        verdict=verdict,
        advice=advice,
    )
