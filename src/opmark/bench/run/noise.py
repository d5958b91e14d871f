"""How noisy this machine is right now, measured the way kernels are, and what to do about it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from opmark.bench.clock.clock import Clock
from opmark.bench.clock.machine import processor_times
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.scheduling import cpu_pressure, may_use_fifo
from opmark.bench.clock.timer import Timer, machine_timer
from opmark.bench.run.reference import Reference, measure_reference
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.estimate import label, median, variation
from opmark.core.units import format_ns

QUIET = "quiet"
_QUIET_SPREAD = 0.03
_QUIET_CLEAN = 0.8
_ROUND_SAMPLES = 20
# The half-width of a label that advice is given for.
_WANTED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """`clean_fraction` of ordinary samples was not interrupted; spreads are of the sentinels' labels over rounds.

    `median_bias` is how far the median of all compute samples lies above the clean 10th percentile; `pressure` is
    the percentage of recent time in which something waited for a processor; `fifo` says whether timed bursts may
    run under real-time priority.

    `preemptions_per_s` were suffered while samples were taken; `stolen` is the share of all processor time that the
    hypervisor gave to others meanwhile. `drift` is how far the compute sentinel went from the first third of the
    rounds to the last. `quiet_share` of the rounds was undisturbed; `wait_s` is how long it took on average, from any
    moment, until one began (None if none did). `reference` is a kernel measured as suites measure theirs, and
    `samples_needed` how many samples its label would need to be sure to 1 %, `seconds_needed` how long they take.
    `sentinels_ns` has the label of each sentinel.
    """

    clean_fraction: float
    compute_spread: float
    memory_spread: float
    median_bias: float
    pressure: float | None
    fifo: bool
    verdict: str
    advice: str
    preemptions_per_s: float | None = None
    stolen: float | None = None
    drift: float = 0.0
    quiet_share: float | None = None
    wait_s: float | None = None
    reference: Reference | None = None
    samples_needed: int | None = None
    seconds_needed: float | None = None
    sentinels_ns: Mapping[str, float] = field(default_factory=dict)


def measure(seconds: float = 4.0, timer: Timer | None = None, target: str = "") -> Noise:
    """Run both sentinels in rounds for about `seconds`, on one thread, and then a kernel of `target` for half as long.

    Without a target the compute sentinel is the reference. Raises `UnavailableError` where the target cannot be
    measured here.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        found, compute = _measured(seconds, timer or machine_timer())
    reference = measure_reference(target, seconds / 2) if target else compute
    return with_reference(found, reference)


def with_reference(found: Noise, reference: Reference) -> Noise:
    """`found` with the kernel it is about, and what that kernel would need, in numbers and in the advice."""
    wanted: int | None = None
    seconds: float | None = None
    advice = found.advice
    if math.isfinite(reference.half_width):
        # The width of an interval goes with the root of the number of samples.
        wanted = max(5, math.ceil(reference.samples * (reference.half_width / _WANTED) ** 2))
        seconds = wanted * FULL.sample_ns / 1e9
        advice += f"; a label sure to 1 % takes about {wanted:,} samples here ({format_ns(seconds * 1e9)})"
    if found.verdict != QUIET and found.wait_s:
        advice += f"; a quiet moment came after {found.wait_s:.2g} s on average"
    elif found.verdict != QUIET and found.wait_s is None:
        advice += "; no quiet moment came while watching, so waiting a little will not help"
    return replace(found, reference=reference, samples_needed=wanted, seconds_needed=seconds, advice=advice)


def wait_until(quiet: Sequence[bool], spacing_s: float) -> float | None:
    """How long it takes on average until a quiet round, from the rounds that were seen; None if there was none."""
    if not any(quiet):
        return None
    waits = []
    ahead = 0
    # Past the end one would have waited at least as long as the sequence lets one see: it starts over.
    for is_quiet in (*reversed(quiet), *reversed(quiet)):
        ahead = 0 if is_quiet else ahead + 1
        waits.append(ahead)
    return sum(waits[len(quiet) :]) / len(quiet) * spacing_s


def _measured(seconds: float, timer: Timer) -> tuple[Noise, Reference]:
    clock = Clock(timer=timer, protocol=FULL)
    sentinels = processor_sentinels()
    latency_ns = {name: clock.warm_up(item.call) for name, item in sentinels.items()}
    labels: dict[str, list[float]] = {name: [] for name in sentinels}
    shares: list[float] = []
    clean: list[bool] = []
    compute: list[float] = []
    compute_clean: list[float] = []
    before = processor_times()
    start_ns = timer.now_ns()
    switches = -timer.preemptions() if timer.preemptions else 0
    end_ns = start_ns + seconds * 1e9
    while timer.now_ns() < end_ns or len(labels["compute"]) < 3:
        flags: list[bool] = []
        for name, item in sentinels.items():
            samples = clock.take(item.call, latency_ns=latency_ns[name], samples=_ROUND_SAMPLES)
            quiet = [ns for ns, is_clean in zip(samples.ns, samples.clean, strict=True) if is_clean]
            labels[name].append(label(quiet or samples.ns))
            flags += samples.clean
            if name == "compute":
                compute += samples.ns
                compute_clean += quiet or samples.ns
        clean += flags
        shares.append(sum(flags) / len(flags))
        timer.sleep(0.05)
    elapsed_s = (timer.now_ns() - start_ns) / 1e9
    switches += timer.preemptions() if timer.preemptions else 0
    spreads = {name: variation(values) or 0.0 for name, values in labels.items()}
    found = judged(
        clean_fraction=sum(clean) / len(clean),
        compute_spread=spreads["compute"],
        memory_spread=spreads["memory"],
        median_bias=median(compute) / min(labels["compute"]) - 1,
        pressure=cpu_pressure(),
        real_time=may_use_fifo(),
    )
    usual = median(labels["compute"])
    steady = [abs(value / usual - 1) <= _QUIET_SPREAD for value in labels["compute"]]
    quiet_rounds = [share >= _QUIET_CLEAN and is_steady for share, is_steady in zip(shares, steady, strict=True)]
    third = max(1, len(labels["compute"]) // 3)
    found = replace(
        found,
        preemptions_per_s=switches / elapsed_s if timer.preemptions else None,
        stolen=_stolen(before, processor_times()),
        drift=median(labels["compute"][-third:]) / median(labels["compute"][:third]) - 1,
        quiet_share=sum(quiet_rounds) / len(quiet_rounds),
        wait_s=wait_until(quiet_rounds, elapsed_s / len(quiet_rounds)),
        sentinels_ns={name: median(values) for name, values in labels.items()},
    )
    return found, Reference.of("compute sentinel", compute, compute_clean)


def _stolen(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])


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
        advice = "labels of small kernels are fine; expect repeated rounds, and leave whole networks for a quieter time"
    elif undisturbed:
        verdict = "the processor's speed itself varies"
        advice = (
            "kernels may be measured, labels are told at the usual clock and rounds in which it moves are repeated; "
            "leave whole networks for a steadier hour, or fix the clock frequency"
        )
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
