"""The process on the other core runs and rests when it is told to, and vanishes with the one that started it."""

import os

import pytest

from opmark.bench.corun.neighbour_process import NeighbourProcess
from opmark.bench.worker.neighbour import NeighbourWork
from opmark.core.errors import MeasurementError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel

CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two processor cores")


def test_it_runs_rests_and_names_what_it_cannot_run() -> None:
    neighbour = NeighbourProcess(Target(device="box", backend="null"))
    try:
        for name in ("cache-512", "compute-25"):
            neighbour.load(NeighbourWork(stressor=name))
            neighbour.go()
            neighbour.rest()
        with pytest.raises(MeasurementError, match="no stressor 'thermal-9'"):
            neighbour.load(NeighbourWork(stressor="thermal-9"))
        with pytest.raises(MeasurementError, match="on the other core"):
            neighbour.load(NeighbourWork(kernel=Kernel.of("nothing", {})))
        neighbour.load(NeighbourWork(stressor="cache-512"))
        neighbour._process.kill()
        with pytest.raises(MeasurementError, match="does not answer"):
            neighbour.go()
    finally:
        neighbour.close()
        os.sched_setaffinity(0, CORES)
    assert neighbour._process.poll() is not None
