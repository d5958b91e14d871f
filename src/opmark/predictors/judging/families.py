"""Families as the unit of evidence: intervals of scores by drawing whole families, and families with relatives.

Networks of one design err together, and so do kernels of one shape group. Intervals follow from the bootstrap of whole
clusters (A. C. Davison, D. V. Hinkley: Bootstrap Methods and their Application, 1997, section 3.8).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from opmark.predictors.inputs.arrays import Integers

_DRAWS = 200
_COVERAGE = 0.9
# Families of one design under two names; others are related where their names start with the same word.
_SAME_DESIGN = (frozenset({"encoder", "decoder"}),)


def family_intervals(
    families: Sequence[str], values_of: Callable[[Integers], Mapping[str, float]]
) -> dict[str, tuple[float, float]]:
    """Compute the 90 % interval of every value that `values_of` computes from row numbers.

    Each draw takes as many families as there are, with repetition, and all of their rows. The draws are the same in
    every call. Empty for fewer than two families.
    """
    names, codes = np.unique(np.array(families), return_inverse=True)
    if len(names) < 2:
        return {}
    rows = [np.flatnonzero(codes == code) for code in range(len(names))]
    source = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {}
    for _ in range(_DRAWS):
        chosen = source.integers(len(names), size=len(names))
        for name, value in values_of(np.concatenate([rows[family] for family in chosen])).items():
            drawn.setdefault(name, []).append(value)
    ends = [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]
    return {name: _pair(np.quantile(values, ends).tolist()) for name, values in drawn.items()}


def _pair(ends: Sequence[float]) -> tuple[float, float]:
    low, high = ends
    return low, high


def relatives(families: Iterable[str], training: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Map each of `families` with a related family in `training` to those relatives.

    Families are related if they are one design under two names, or if their names start with the same word:
    `resnet` and `resnet-small`.
    """
    known = sorted(set(training))
    found = {family: tuple(other for other in known if _related(family, other)) for family in sorted(set(families))}
    return {family: others for family, others in found.items() if others}


def _related(first: str, other: str) -> bool:
    return first.partition("-")[0] == other.partition("-")[0] or {first, other} in _SAME_DESIGN
