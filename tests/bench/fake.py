"""Time under the test's control, and a worker command whose backends include the faulty one."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opmark.bench.clock.clock import Timer

FAULTY_FOLDER = Path(__file__).parent / "faulty"
COMMAND = (
    sys.executable,
    "-c",
    "import opmark.bench.backends as b, sys\n"
    f"b.__path__.append({str(FAULTY_FOLDER)!r})\n"
    "from opmark.bench.worker.server import main\nmain()",
)


@dataclass
class FakeTime:
    """A clock that `work` moves: each call takes `latency_ns`, some are interrupted for `stall_ns`."""

    latency_ns: float = 1000.0
    stall_ns: float = 5_000_000.0
    # Which calls are interrupted, counted from 0.
    stalls: Iterator[bool] | None = None
    now_ns: float = 0.0
    switches: int = 0
    faults: int = 0
    faults_per_call: int = 0
    calls: int = 0
    sleeps: list[float] = field(default_factory=list)
    slow_after_sleep: float = 1.0
    awake_ns: float = 1e12

    def work(self) -> None:
        self.calls += 1
        self.faults += self.faults_per_call
        self.now_ns += self.latency_ns * (self.slow_after_sleep if self.awake_ns < 1_000_000 else 1.0)
        self.awake_ns += self.latency_ns
        if self.stalls is not None and next(self.stalls):
            self.now_ns += self.stall_ns
            self.switches += 1

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_ns += seconds * 1e9
        self.awake_ns = 0.0

    def timer(self, *, filtered: bool = True) -> Timer:
        return Timer(
            now_ns=lambda: round(self.now_ns),
            preemptions=(lambda: self.switches) if filtered else None,
            faults=lambda: self.faults,
            sleep=self.sleep,
        )
