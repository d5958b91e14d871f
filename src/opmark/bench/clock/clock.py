"""Warm-up, sample sizing and timed bursts: pure, with the timer and the scheduler handed in."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import repeat

from opmark.bench.clock.protocol import Protocol
from opmark.bench.clock.timer import Timer

Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """`ns[i]` is the time of one call in sample i, `clean[i]` whether nothing interrupted it.

    `filtered` is False where the system does not say; then every sample counts as clean.
    """

    ns: tuple[float, ...]
    clean: tuple[bool, ...]
    calls: int
    faults_per_call: float
    filtered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Takes samples by the rules of `protocol`.

    `burst` is entered around at most `protocol.burst_ns` of timed work and raises this thread's priority where that
    is permitted.
    """

    timer: Timer
    protocol: Protocol
    burst: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)

    def calls(self, latency_ns: float) -> int:
        """How many back-to-back calls make a sample."""
        return max(1, round(self.protocol.sample_ns / max(latency_ns, 1.0)))

    def warm_up(self, call: Call) -> float:
        """Run until three samples agree; the nanoseconds of one call.

        At least two runs; at most `warm_up_samples` samples or `warm_up_limit_s` seconds.
        """
        protocol = self.protocol
        start = self.timer.now_ns()
        with self.burst():
            self._elapsed_ns(call, 1)
            latency_ns = float(self._elapsed_ns(call, 1))
            recent: list[float] = []
            for _ in range(protocol.warm_up_samples):
                if self.timer.now_ns() - start > min(protocol.warm_up_limit_s * 1e9, protocol.burst_ns):
                    break
                calls = self.calls(latency_ns)
                latency_ns = self._elapsed_ns(call, calls) / calls
                recent = [*recent[-2:], latency_ns]
                if len(recent) == 3 and max(recent) <= (1 + protocol.warm_up_agreement) * min(recent):
                    break
        return min([latency_ns, *recent])

    def take(
        self, call: Call, *, latency_ns: float, samples: int, limit_s: float = math.inf, awake: bool = False
    ) -> Samples:
        """`samples` samples of a call that takes about `latency_ns`; fewer, but one, once `limit_s` has passed.

        `awake` says that other samples ended just now: then one sample's calls are enough to warm up to this one.
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
                    elapsed = self._elapsed_ns(call, calls)
                    after = timer.preemptions() if timer.preemptions else 0
                    # A clock that was set back says nothing about this sample; one set forward is an outlier.
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
        """Run through the first millisecond after a sleep, which is slower than what follows."""
        one_sample = self.calls(latency_ns)
        millisecond = math.ceil(self.protocol.wake_ns / max(latency_ns, 1.0))
        for _ in range(one_sample if awake else max(1, min(3 * one_sample, millisecond))):
            call()

    def _elapsed_ns(self, call: Call, calls: int) -> int:
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
