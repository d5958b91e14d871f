"""Take timed samples of a call: warm-up, sample size and bursts."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import repeat

from opmark.bench.clock.protocol import MeasuringProtocol

Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A clock with the operating system's counters of this thread.

    `preemptions` counts the involuntary context switches so far; None if the system does not report them
    (`unfiltered`). `faults` counts the minor page faults so far. `sleep` takes seconds.
    """

    now_ns: Callable[[], int]
    preemptions: Callable[[], int] | None
    faults: Callable[[], int]
    sleep: Callable[[float], None] = time.sleep


def machine_timer() -> Timer:
    """Return this machine's monotonic clock with this thread's resource usage."""
    try:
        import resource
    except ImportError:  # not a Unix
        return Timer(now_ns=time.perf_counter_ns, preemptions=None, faults=lambda: 0)
    usage = resource.getrusage
    who = getattr(resource, "RUSAGE_THREAD", None)
    if who is None:
        return Timer(
            now_ns=time.perf_counter_ns,
            preemptions=None,
            faults=lambda: usage(resource.RUSAGE_SELF).ru_minflt,
        )
    thread: int = who
    return Timer(
        now_ns=time.perf_counter_ns,
        preemptions=lambda: usage(thread).ru_nivcsw,
        faults=lambda: usage(thread).ru_minflt,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """`ns[i]` is the time of one call in sample i; `clean[i]` is False if something interrupted the sample.

    `filtered` is False if the system does not report interruptions; then every sample counts as clean.
    """

    ns: tuple[float, ...]
    clean: tuple[bool, ...]
    calls: int
    faults_per_call: float
    filtered: bool

    @property
    def clean_or_all(self) -> list[float]:
        """The uninterrupted samples, or all samples if every one was interrupted."""
        clean = [ns for ns, is_clean in zip(self.ns, self.clean, strict=True) if is_clean]
        return clean or list(self.ns)

    @property
    def flags(self) -> str:
        """One character per sample: `1` for clean, `0` for interrupted."""
        return "".join("1" if clean else "0" for clean in self.clean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Takes samples by the rules of `protocol`.

    The clock enters `burst` around at most `protocol.burst_ns` of timed work. It raises the priority of this thread if
    the system permits it.
    """

    timer: Timer
    protocol: MeasuringProtocol
    burst: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)

    def calls(self, latency_ns: float) -> int:
        """The number of back-to-back calls in one sample."""
        return max(1, round(self.protocol.sample_ns / max(latency_ns, 1.0)))

    def warm_up(self, call: Call, *, enough_ns: float = math.inf) -> float:
        """Run `call` until three samples agree, and return the time of one call in ns.

        Makes at least two calls, and takes at most `warm_up_samples` samples, `warm_up_limit_s` seconds or `enough_ns`.
        """
        protocol = self.protocol
        start = self.timer.now_ns()
        limit_ns = min(protocol.warm_up_limit_s * 1e9, protocol.burst_ns, enough_ns)
        with self.burst():
            self.elapsed_ns(call, 1)
            latency_ns = float(self.elapsed_ns(call, 1))
            recent: list[float] = []
            for _ in range(protocol.warm_up_samples):
                if self.timer.now_ns() - start > limit_ns:
                    break
                calls = self.calls(latency_ns)
                latency_ns = self.elapsed_ns(call, calls) / calls
                recent = [*recent[-2:], latency_ns]
                if len(recent) == 3 and max(recent) <= (1 + protocol.warm_up_agreement) * min(recent):
                    break
        return min([latency_ns, *recent])

    def take(
        self, call: Call, *, latency_ns: float, samples: int, limit_s: float = math.inf, awake: bool = False
    ) -> Samples:
        """Take `samples` samples of a call of about `latency_ns`; fewer, but at least one, after `limit_s` seconds.

        With `awake`, other samples have just ended, and the calls of one sample are enough to warm up.
        """
        timer = self.timer
        calls = self.calls(latency_ns)
        end = timer.now_ns() + limit_s * 1e9
        ns: list[float] = []
        clean: list[bool] = []
        faults = 0
        while len(ns) < samples and not (ns and timer.now_ns() > end):
            if ns:
                timer.sleep(self.protocol.rest_s)
            with self.burst():
                burst_end = timer.now_ns() + self.protocol.burst_ns - calls * latency_ns
                self._wake(call, latency_ns, awake=awake and not ns)
                faults -= timer.faults()
                while len(ns) < samples:
                    before = timer.preemptions() if timer.preemptions else 0
                    elapsed = self.elapsed_ns(call, calls)
                    after = timer.preemptions() if timer.preemptions else 0
                    # A sample is unusable if the clock was set back, and an outlier if it was set forward.
                    ns.append(max(elapsed, 1) / calls)
                    clean.append(before == after and elapsed > 0)
                    if timer.now_ns() > min(burst_end, end):
                        break
                faults += timer.faults()
        return Samples(
            ns=tuple(ns),
            clean=tuple(clean),
            calls=calls,
            faults_per_call=max(0.0, faults / (len(ns) * calls)),
            filtered=timer.preemptions is not None,
        )

    def _wake(self, call: Call, latency_ns: float, *, awake: bool) -> None:
        """Run through the first millisecond after a sleep, which is slower than the time after it."""
        one_sample = self.calls(latency_ns)
        millisecond = math.ceil(self.protocol.wake_ns / max(latency_ns, 1.0))
        for _ in range(one_sample if awake else max(1, min(3 * one_sample, millisecond))):
            call()

    def elapsed_ns(self, call: Call, calls: int) -> int:
        """The time of `calls` back-to-back calls."""
        now = self.timer.now_ns
        if calls == 1:
            start = now()
            call()
            return now() - start
        loop = repeat(None, calls)
        start = now()
        for _ in loop:
            call()
        return now() - start
