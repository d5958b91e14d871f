"""The best figures that any placement of a job on a fleet could have, from its units' times alone."""

from dataclasses import replace

import numpy as np

from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.goal import Figures, samples_per_second
from opmark.leaderboards.provisioning.job import Job
from opmark.leaderboards.search.renting.device_pool import DevicePool
from opmark.leaderboards.search.renting.fleet_bounds import FleetBounds


class FleetLimits:
    """Limits for every fleet of one job; those of a fleet are computed once."""

    def __init__(self, job: Job, objective: str) -> None:
        whole = replace(job.whole, objective=objective, replication=objective == "throughput")
        self._job = job
        self._pool = DevicePool.of(whole)
        self._bounds = FleetBounds(self._pool)
        self._known: dict[Fleet, Figures] = {}

    def best_figures(self, fleet: Fleet) -> Figures:
        """Figures that no placement on the fleet can beat; an infinite time where it cannot run every unit."""
        known = self._known.get(fleet)
        if known is None:
            least_ns = self._least_ns(fleet)
            known = self._known[fleet] = Figures(
                latency_ns=least_ns,
                samples_per_second=samples_per_second(self._job.batch, least_ns),
                price_per_hour=self._job.catalogue.price_per_hour(fleet),
            )
        return known

    def _least_ns(self, fleet: Fleet) -> float:
        counts = dict(fleet.items())
        row = tuple(counts.get(kind, 0) for kind in self._pool.types)
        types = [index for index, count in enumerate(row) if count]
        if not types or not np.isfinite(self._pool.unit_ns[:, types].min(axis=1)).all():
            return float("inf")
        return max(1.0, self._bounds.least_ns(row))
