"""Measure this machine's current noise the way kernels are measured, and give advice."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from opmark.bench.clock.clock import Clock, Timer, machine_timer
from opmark.bench.clock.machine import processor_times
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.scheduling import cpu_pressure, may_use_fifo
from opmark.bench.run.noise_floor import NoiseFloor, measure_floor, pieces_of_work
from opmark.bench.run.reference import Reference, measure_reference
from opmark.bench.worker.backend import Prepared
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.measurements.estimate import label, median, variation
from opmark.core.units import format_ns

QUIET = "quiet"
_QUIET_SPREAD = 0.03
_QUIET_CLEAN = 0.8
_ROUND_SAMPLES = 20
# The half-width that the advice aims at.
_WANTED = 0.01
# The share of the time for the noise floor.
_FLOOR_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of a machine over a few seconds.

    `clean_fraction` is the share of samples without interruption. The spreads are the variation of the sentinels'
    labels over rounds. `median_bias` is the excess of the median of all compute samples over the clean 10th
    percentile. `pressure` is the percentage of recent time in which a task waited for a processor. `fifo` tells that
    timed bursts may run under real-time priority.

    `preemptions_per_s` counts context switches during the samples. `stolen` is the share of processor time that the
    hypervisor gave to others. `drift` is the change of the compute sentinel from the first third of the rounds to the
    last. `quiet_share` is the share of undisturbed rounds, and `wait_s` the average time until such a round (None
    without one). `reference` is a kernel measured the way suites do; its label would need `samples_needed` samples in
    `seconds_needed` seconds for an error of 1 %. `sentinels_ns` are the labels of the sentinels, and `floor` tells how
    well one look can tell a label here at best.
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
    floor: NoiseFloor | None = None


def measure(seconds: float = 4.0, timer: Timer | None = None, target: str = "") -> Noise:
    """Run both sentinels in rounds for about `seconds` on one thread, then a kernel of `target` for half as long.

    Without a target, the compute sentinel is the reference. Raises `UnavailableError` if the target cannot be measured
    here.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        found, compute = _measured((1 - _FLOOR_SHARE) * seconds, timer or machine_timer())
        clock = Clock(timer=timer or machine_timer(), protocol=FULL)
        floor = measure_floor(clock, processor_sentinels(), pieces_of_work(), _FLOOR_SHARE * seconds)
        found = replace(found, floor=floor)
    reference = measure_reference(target, seconds / 2) if target else compute
    return with_reference(found, reference)


def with_reference(found: Noise, reference: Reference) -> Noise:
    """`found` with its reference kernel and the samples that this kernel would need."""
    wanted: int | None = None
    seconds: float | None = None
    advice = found.advice
    if math.isfinite(reference.half_width):
        # The width of an interval falls with the square root of the number of samples.
        wanted = max(5, math.ceil(reference.samples * (reference.half_width / _WANTED) ** 2))
        seconds = wanted * FULL.sample_ns / 1e9
        advice += f"; a label with an error of 1 % needs about {wanted:,} samples here ({format_ns(seconds * 1e9)})"
    if found.verdict != QUIET and found.wait_s:
        advice += f"; a quiet moment came after {found.wait_s:.2g} s on average"
    elif found.verdict != QUIET and found.wait_s is None:
        advice += "; no quiet moment came during the measurement, so a short wait will not help"
    return replace(found, reference=reference, samples_needed=wanted, seconds_needed=seconds, advice=advice)


def wait_until(quiet: Sequence[bool], spacing_s: float) -> float | None:
    """The average time until a quiet round, from any moment of the observed rounds; None if no round was quiet."""
    if not any(quiet):
        return None
    waits = []
    ahead = 0
    # After the last round, the sequence starts over.
    for is_quiet in (*reversed(quiet), *reversed(quiet)):
        ahead = 0 if is_quiet else ahead + 1
        waits.append(ahead)
    return sum(waits[len(quiet) :]) / len(quiet) * spacing_s


@dataclass(kw_only=True)
class _Rounds:
    """The sentinels' samples so far: `labels` by sentinel and round, the compute samples, and all flags by round."""

    labels: dict[str, list[float]]
    compute: list[float] = field(default_factory=list)
    compute_clean: list[float] = field(default_factory=list)
    flags: list[list[bool]] = field(default_factory=list)

    @property
    def quiet(self) -> list[bool]:
        """True for every round with enough clean samples and a usual compute label."""
        usual = median(self.labels["compute"])
        return [
            sum(flags) / len(flags) >= _QUIET_CLEAN and abs(value / usual - 1) <= _QUIET_SPREAD
            for flags, value in zip(self.flags, self.labels["compute"], strict=True)
        ]


def _measured(seconds: float, timer: Timer) -> tuple[Noise, Reference]:
    clock = Clock(timer=timer, protocol=FULL)
    sentinels = processor_sentinels()
    latency_ns = {name: clock.warm_up(item.call) for name, item in sentinels.items()}
    before = processor_times()
    start_ns = timer.now_ns()
    switches = -timer.preemptions() if timer.preemptions else 0
    rounds = _take_rounds(clock, sentinels, latency_ns, seconds)
    elapsed_s = (timer.now_ns() - start_ns) / 1e9
    switches += timer.preemptions() if timer.preemptions else 0
    labels, compute = rounds.labels, rounds.labels["compute"]
    clean = [flag for flags in rounds.flags for flag in flags]
    spreads = {name: variation(values) or 0.0 for name, values in labels.items()}
    found = judged(
        clean_fraction=sum(clean) / len(clean),
        compute_spread=spreads["compute"],
        memory_spread=spreads["memory"],
        median_bias=median(rounds.compute) / min(compute) - 1,
        pressure=cpu_pressure(),
        real_time=may_use_fifo(),
    )
    third = max(1, len(compute) // 3)
    quiet = rounds.quiet
    found = replace(
        found,
        preemptions_per_s=switches / elapsed_s if timer.preemptions else None,
        stolen=_stolen(before, processor_times()),
        drift=median(compute[-third:]) / median(compute[:third]) - 1,
        quiet_share=sum(quiet) / len(quiet),
        wait_s=wait_until(quiet, elapsed_s / len(quiet)),
        sentinels_ns={name: median(values) for name, values in labels.items()},
    )
    return found, Reference.of("compute sentinel", rounds.compute, rounds.compute_clean)


def _take_rounds(
    clock: Clock, sentinels: Mapping[str, Prepared], latency_ns: Mapping[str, float], seconds: float
) -> _Rounds:
    """Sample the sentinels in rounds for about `seconds`, at least three rounds."""
    rounds = _Rounds(labels={name: [] for name in sentinels})
    end_ns = clock.timer.now_ns() + seconds * 1e9
    while clock.timer.now_ns() < end_ns or len(rounds.flags) < 3:
        flags: list[bool] = []
        for name, item in sentinels.items():
            samples = clock.take(item.call, latency_ns=latency_ns[name], samples=_ROUND_SAMPLES)
            rounds.labels[name].append(label(samples.clean_or_all))
            flags += samples.clean
            if name == "compute":
                rounds.compute += samples.ns
                rounds.compute_clean += samples.clean_or_all
        rounds.flags.append(flags)
        clock.timer.sleep(0.05)
    return rounds


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
    """Add the verdict and the advice to these numbers."""
    undisturbed = real_time or clean_fraction >= _QUIET_CLEAN
    steady = compute_spread <= _QUIET_SPREAD and memory_spread <= _QUIET_SPREAD
    if undisturbed and steady:
        verdict, advice = QUIET, "measure now"
    elif undisturbed and compute_spread <= _QUIET_SPREAD:
        verdict = "neighbours use the shared cache and memory"
        advice = (
            "labels of small kernels are reliable; expect repeated rounds, and measure whole networks at a quieter time"
        )
    elif undisturbed:
        verdict = "the processor's speed itself varies"
        advice = (
            "kernels can be measured: labels are told at one state, and rounds with a change are repeated; "
            "measure whole networks at a steadier time, or fix the clock frequency"
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
