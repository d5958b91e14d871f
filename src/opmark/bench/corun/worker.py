"""The process that times a kernel alone and beside its neighbour, in turns.

Run it as `python -m opmark.bench.corun.worker`.
"""

import math
from collections.abc import Mapping
from typing import Any

from opmark.bench.clock.clock import Call, Clock
from opmark.bench.clock.scheduling import UNFILTERED
from opmark.bench.corun.neighbour_process import NeighbourProcess
from opmark.bench.worker.backend import SINGLE
from opmark.bench.worker.neighbour import Neighbour, NeighbourWork
from opmark.bench.worker.server import Worker, main
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.kernels.kernel import Kernel

# After a change beside it, a kernel runs untimed for this long: the caches fill or recover.
_SETTLING_NS = 2_000_000
# (longest call, turns)
_TURNS = ((1e6, 10), (5e6, 7), (2e7, 5))


class CorunWorker(Worker):
    """A worker that also answers `corun`: one kernel beside several neighbours."""

    _beside: Neighbour | None = None

    def corun(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Measure all turns of a kernel beside each neighbour; a neighbour that cannot run is `failed`."""
        kernel = Kernel.of(request["kernel"]["kind"], request["kernel"]["parameters"])
        bench = self._bench
        prepared = bench.backend.prepare(kernel, bench.target, copies=1, construction=SINGLE, rotated=False)
        try:
            latency_ns = bench.clock.warm_up(prepared.call)
            turns = next((turns for most, turns in _TURNS if latency_ns <= most), 0)
            if not turns:
                raise UnavailableError("a call takes too long to be measured in turns")
            scheduling = bench.settle(latency_ns)
            filtered = bench.clock.timer.preemptions is not None
            found = []
            for content in request["neighbours"]:
                try:
                    neighbour = self._neighbour()
                    neighbour.load(NeighbourWork.of(content))
                    taken = duet(bench.clock, prepared.call, latency_ns, neighbour, turns)
                    found.append({**taken, "scheduling": scheduling if filtered else UNFILTERED})
                except MeasurementError as error:
                    self._end_neighbour()
                    found.append({"failed": error.message})
        finally:
            prepared.close()
        return {"found": found}

    def _neighbour(self) -> Neighbour:
        if self._beside is None:
            self._beside = self._bench.backend.neighbour() or NeighbourProcess(self._bench.target)
        return self._beside

    def _end_neighbour(self) -> None:
        if self._beside is not None:
            self._beside.close()
            self._beside = None


def duet(clock: Clock, call: Call, latency_ns: float, neighbour: Neighbour, turns: int) -> dict[str, Any]:
    """Take one sample alone and one beside `neighbour` in each turn; every other turn begins with the neighbour."""
    calls = clock.calls(latency_ns)
    settling = max(1, math.ceil(_SETTLING_NS / max(latency_ns, 1.0)))
    ns: dict[bool, list[float]] = {False: [], True: []}
    clean: dict[bool, str] = {False: "", True: ""}
    preemptions = clock.timer.preemptions or (lambda: 0)
    try:
        for turn in range(turns):
            with clock.burst():
                for beside in (False, True) if turn % 2 == 0 else (True, False):
                    if beside:
                        neighbour.go()
                    else:
                        neighbour.rest()
                    for _ in range(settling):
                        call()
                    switches = preemptions()
                    elapsed = clock.elapsed_ns(call, calls)
                    ns[beside].append(round(max(elapsed, 1) / calls, 1))
                    clean[beside] += "1" if preemptions() == switches and elapsed > 0 else "0"
            clock.timer.sleep(0.0)
    finally:
        neighbour.rest()
    return {
        "alone_ns": ns[False],
        "beside_ns": ns[True],
        "alone_clean": clean[False],
        "beside_clean": clean[True],
    }


if __name__ == "__main__":
    main(CorunWorker)
