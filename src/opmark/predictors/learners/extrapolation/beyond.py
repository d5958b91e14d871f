"""A model for kernels larger than every measured one: the less they are like measured ones, the more a law tells.

Trees and a Gaussian process tell a kernel unlike all others what its nearest relatives have in common. Of products of
large matrices only those of few rows are measured, so that large weights seem to be slow (decision 0044). A roofline
knows better, where it tells the largest measured kernels, and as far as it counts FLOPs: time per FLOP goes on, while
time per byte ends at the next cache.
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
from opmark.predictors.learners.residual import Residual, residual_from, smooth_residual

# With fewer rows, nobody knows whether a law holds.
_ENOUGH_ROWS = 40
# A law must tell the largest three in ten measured kernels within this error, in nats, in the median.
_LARGEST = 0.3
_MOST_ERROR = 0.12
# In the effects of codes, a row that is smaller by one nat of FLOPs times bytes has so many nats less weight.
_DECAY = 0.25
# Rows that an effect needs to reach half of what they say.
_PENALTY = 2.0
# Trust in what was learned from measured kernels is this power of a kernel's similarity to them.
_POWER = 8
# As many rows as the usual process keeps take more time and tell the frontier no better (decision 0046).
_MOST_ROWS = 800
_SEARCH_ROWS = 240
_FILE, _LABEL = "beyond.json", "beyond"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Beyond:
    """A model of kernels above `largest` (nats of FLOPs times bytes).

    The law is the `roofline` times e to the power of `usual` and of the `effects`, by column and code. `learned` is a
    process of the nats above the roofline.
    """

    largest: float
    roofline: CacheRoofline
    usual: float
    effects: Mapping[int, Mapping[float, float]]
    learned: Residual

    def larger(self, inputs: Inputs) -> Flags:
        """Mark the kernels that are larger than every measured one."""
        return np.asarray(inputs.log_work > self.largest)

    def latency_ns(self, inputs: Inputs, usual_ns: Floats) -> Floats:
        """Predict hot latencies; of the `usual_ns` that other learners predict, as much is kept as is not for FLOPs."""
        trust = self.learned.similarity(inputs) ** _POWER
        above = trust * self.learned.predict(inputs) + (1 - trust) * _told(inputs, self.usual, self.effects)
        beyond_ns = self.roofline.latency_ns(inputs) * np.exp(above)
        latency: Floats = usual_ns * (beyond_ns / usual_ns) ** self.roofline.flops_share(inputs)
        return latency

    def files(self) -> dict[str, str]:
        """Write the law and the process."""
        effects = {
            str(column): [[code, nats] for code, nats in sorted(known.items())]
            for column, known in self.effects.items()
        }
        values = {
            "largest": self.largest,
            "roofline": asdict(self.roofline),
            "usual": self.usual,
            "effects": effects,
        }
        return {_FILE: to_text(values)} | self.learned.files(_LABEL)


def fit_beyond(inputs: Inputs, labels: Latencies) -> Beyond | None:
    """Fit the law and the process; None where the law does not tell the largest kernels.

    The effects of codes are a ridge regression, in which large kernels weigh more.
    """
    if len(inputs) < _ENOUGH_ROWS:
        return None
    roofline = fit_cache_roofline(inputs, labels.hot_ns)
    above = np.log(labels.hot_ns / roofline.latency_ns(inputs))
    size = inputs.log_work
    usual, effects = _fitted_effects(inputs, above, np.exp(_DECAY * (size - size.max())))
    error = np.abs(above - _told(inputs, usual, effects))[size >= np.quantile(size, 1 - _LARGEST)]
    if np.median(error) > _MOST_ERROR:
        return None
    return Beyond(
        largest=float(size.max()),
        roofline=roofline,
        usual=usual,
        effects=effects,
        learned=smooth_residual(inputs, above, most_rows=_MOST_ROWS, search_rows=_SEARCH_ROWS, weight=labels.weight),
    )


def beyond_from(files: Mapping[str, str]) -> Beyond | None:
    """Read what `Beyond.files` wrote, None without it. Raises `KeyError` or `ValueError` on foreign text."""
    if _FILE not in files:
        return None
    values = from_text(files[_FILE])
    effects = {
        int(column): {float(code): float(nats) for code, nats in known} for column, known in values["effects"].items()
    }
    return Beyond(
        largest=float(values["largest"]),
        roofline=cache_roofline_from(values["roofline"]),
        usual=float(values["usual"]),
        effects=effects,
        learned=residual_from(files, _LABEL),
    )


def _fitted_effects(inputs: Inputs, above: Floats, weight: Floats) -> tuple[float, dict[int, dict[float, float]]]:
    codes = [(column, code) for column in inputs.categorical for code in np.unique(inputs.matrix[:, column]).tolist()]
    columns = [np.equal(inputs.matrix[:, column], code).astype(np.float64) for column, code in codes]
    design = np.column_stack([np.ones(len(inputs)), *columns])
    weighed = design * weight[:, None]
    penalty = _PENALTY * weight.mean() * np.eye(design.shape[1])
    usual, *nats = np.linalg.solve(design.T @ weighed + penalty, weighed.T @ above).tolist()
    effects: dict[int, dict[float, float]] = {}
    for (column, code), effect in zip(codes, nats, strict=True):
        effects.setdefault(column, {})[code] = effect
    return usual, effects


def _told(inputs: Inputs, usual: float, effects: Mapping[int, Mapping[float, float]]) -> Floats:
    """The law's nats above the roofline; a code that it never saw has no effect."""
    total = np.full(len(inputs), usual)
    for column, known in sorted(effects.items()):
        total += [known.get(code, 0.0) for code in inputs.matrix[:, column].tolist()]
    return total
