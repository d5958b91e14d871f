"""A law of the largest measured kernels alone: half of what a larger one is told.

Most rows of a kind are small, and what they teach ends at a cache. The largest quarter knows what waits for memory, and
its law goes on. Alone it errs as much as the learners of all rows do, but in other kernels: the geometric mean of both
errs less (decision 0058).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Flags, Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.extrapolation.cache_roofline import (
    CacheRoofline,
    cache_roofline_from,
    fit_cache_roofline,
)
from opmark.predictors.learners.extrapolation.reach import Reach, reach_from, reach_of_all
from opmark.predictors.learners.residual import Residual, residual_from, smooth_residual

# The largest quarter of the rows, in FLOPs times bytes, and how many of them a law needs.
_LARGEST = 0.25
_ENOUGH_ROWS = 40
_MOST_ROWS = 1200
_SEARCH_ROWS = 360
_FILE, _LABEL, _PREFIX = "largest.json", "largest", "largest-"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Largest:
    """A `roofline` of the largest rows, what was `learned` of the nats above it, and the `limits` of their columns.

    Kernels above `size` (nats of FLOPs times bytes) follow it.
    """

    size: float
    roofline: CacheRoofline
    learned: Residual
    limits: Reach

    def larger(self, inputs: Inputs) -> Flags:
        """Mark the kernels that are larger than every measured one."""
        return np.asarray(inputs.log_work > self.size)

    def mean_ns(self, inputs: Inputs, usual_ns: Floats) -> Floats:
        """Compute the geometric mean of the law and of the `usual_ns` that other learners predict."""
        law = self.roofline.latency_ns(inputs) * np.exp(self.learned.predict(self.limits.within(inputs)))
        mean: Floats = np.sqrt(law * usual_ns)
        return mean

    def files(self) -> dict[str, str]:
        """Write the law and the process."""
        limits = {f"{_PREFIX}{name}": text for name, text in self.limits.files().items()}
        values = {"size": self.size, "roofline": asdict(self.roofline)}
        return {_FILE: to_text(values)} | limits | self.learned.files(_LABEL)


def fit_largest(inputs: Inputs, labels: Latencies) -> Largest | None:
    """Fit the law to the largest quarter of the rows; None where these are too few."""
    rows = inputs.log_work >= np.quantile(inputs.log_work, 1 - _LARGEST)
    largest, own = inputs.take(rows), labels.take(rows)
    if len(largest) < _ENOUGH_ROWS:
        return None
    roofline = fit_cache_roofline(largest, own.hot_ns)
    return Largest(
        size=float(inputs.log_work.max()),
        roofline=roofline,
        learned=smooth_residual(
            largest,
            np.log(own.hot_ns / roofline.latency_ns(largest)),
            most_rows=_MOST_ROWS,
            search_rows=_SEARCH_ROWS,
            weight=own.weight,
        ),
        limits=reach_of_all(largest),
    )


def largest_from(files: Mapping[str, str]) -> Largest | None:
    """Read what `Largest.files` wrote, None without it. Raises `KeyError` or `ValueError` on foreign text."""
    if _FILE not in files:
        return None
    values = from_text(files[_FILE])
    limits = reach_from({name.removeprefix(_PREFIX): text for name, text in files.items() if name.startswith(_PREFIX)})
    if limits is None:
        raise ValueError(f"{_FILE} lacks the limits of its columns")
    return Largest(
        size=float(values["size"]),
        roofline=cache_roofline_from(values["roofline"]),
        learned=residual_from(files, _LABEL),
        limits=limits,
    )
