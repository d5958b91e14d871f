"""Take samples in turns: sentinels, then the work, then sentinels again, within a few milliseconds (duet benchmarking).

Whatever slows the machine down for longer than a turn slows down the work and the sentinels beside it (Bulej et al.,
ICPE 2020). Before each timed stretch, the same work runs untimed, so that it finds its own data in cache and not the
other's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opmark.bench.clock.clock import Call, Clock, Samples

# Calls of a sentinel in one reading: long enough to exceed the clock's resolution a thousandfold.
_READING_NS = 60_000.0
# Enough calls of the shortest kernel for a millisecond, also where a clock stands still.
_WAKING_CALLS_AT_MOST = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Work that has its stretch in every turn: `samples` samples of `calls` calls, after `untimed` calls of `before`.

    By default, `before` is the work itself.
    """

    call: Call
    calls: int
    untimed: int = 1
    samples: int = 1
    before: Call | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The samples of every part, and the sentinels' readings: one before every turn and one after the last."""

    samples: tuple[Samples, ...]
    readings: Mapping[str, tuple[float, ...]]


@dataclass(slots=True, kw_only=True)
class _Taken:
    ns: list[float] = field(default_factory=list)
    clean: list[bool] = field(default_factory=list)
    faults: int = 0


def sentinel_part(call: Call, latency_ns: float) -> Part:
    """A sentinel of about `latency_ns` as a part."""
    return Part(call=call, calls=max(1, math.ceil(_READING_NS / max(latency_ns, 1.0))))


def reading_ns(clock: Clock, sentinel: Part) -> float:
    """Take one reading of a sentinel, as `take_turns` does."""
    into = _Taken()
    _stretch(clock, sentinel, into)
    return into.ns[0]


def take_turns(
    clock: Clock, parts: Sequence[Part], sentinels: Mapping[str, Part], *, turns: int, limit_s: float = math.inf
) -> Turns:
    """Take `turns` turns, fewer but at least one after `limit_s` seconds; the thread rests between long bursts."""
    timer, protocol = clock.timer, clock.protocol
    end = timer.now_ns() + limit_s * 1e9
    taken = [_Taken() for _ in parts]
    read = {name: _Taken() for name in sentinels}
    done = 0
    while done < turns and not (done and timer.now_ns() > end):
        if done:
            timer.sleep(protocol.rest_s)
        with clock.burst():
            begun = timer.now_ns()
            _wake(clock, [*sentinels.values(), *parts])
            while done < turns:
                turn_begun = timer.now_ns()
                for name, part in sentinels.items():
                    _stretch(clock, part, read[name])
                for part, into in zip(parts, taken, strict=True):
                    _stretch(clock, part, into)
                done += 1
                now = timer.now_ns()
                if now > end or now - begun + (now - turn_begun) > protocol.burst_ns:
                    break
            if done >= turns or timer.now_ns() > end:
                for name, part in sentinels.items():
                    _stretch(clock, part, read[name])
    filtered = timer.preemptions is not None
    return Turns(
        samples=tuple(
            Samples(
                ns=tuple(into.ns),
                clean=tuple(into.clean),
                calls=part.calls,
                faults_per_call=max(0.0, into.faults / (len(into.ns) * part.calls)),
                filtered=filtered,
            )
            for part, into in zip(parts, taken, strict=True)
        ),
        readings={name: tuple(into.ns) for name, into in read.items()},
    )


def _stretch(clock: Clock, part: Part, into: _Taken) -> None:
    timer = clock.timer
    before = part.before or part.call
    for _ in range(part.untimed):
        before()
    into.faults -= timer.faults()
    for _ in range(part.samples):
        switches = timer.preemptions() if timer.preemptions else 0
        elapsed = clock.elapsed_ns(part.call, part.calls)
        switches -= timer.preemptions() if timer.preemptions else 0
        # A sample is unusable if the clock was set back, and an outlier if it was set forward.
        into.ns.append(max(elapsed, 1) / part.calls)
        into.clean.append(switches == 0 and elapsed > 0)
    into.faults += timer.faults()


def _wake(clock: Clock, parts: Sequence[Part]) -> None:
    """Run through the first millisecond after a sleep, which is slower than the time after it."""
    end = clock.timer.now_ns() + clock.protocol.wake_ns
    for _ in range(_WAKING_CALLS_AT_MOST):
        parts[0].call()
        if clock.timer.now_ns() >= end:
            return
