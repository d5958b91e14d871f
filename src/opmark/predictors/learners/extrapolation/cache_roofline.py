"""A roofline whose bytes cost more beyond each cache, fitted to the logarithms of measurements.

Aleksandar Ilic, Frederico Pratas, Leonel Sousa: Cache-aware Roofline Model. IEEE Computer Architecture Letters 13(1),
2014. Here terms are added, as in `learners.roofline`, and the cost of a byte rises smoothly: of the moved bytes, the
share moved / (moved + cache) counts as beyond a cache. Bytes of weights and written bytes have terms of their own.
Where a kind tells the code that a library chooses, each code has its time per FLOP, and what it copies and repeats is
added, too (decision 0050).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.steps import with_code_path

_BEYOND = "beyond_cache_"
# Columns of `Kind.code_path`: flags of codes, and logarithms of what a code copies and repeats. Only with copied bytes
# are the others amounts of a code path: some kinds count products of their own.
_BY_CODE = "by_"
_COPIED = "copied_bytes"
_AMOUNTS_OF_BYTES = (_COPIED, "column_bytes")
_PRODUCTS, _STEPS = "products", "vector_steps"
_WORK = ("flops", _PRODUCTS, _STEPS)
# What the terms of codes are made of. Learners leave out columns that are the same in all of their rows.
_NEEDED = frozenset({*_AMOUNTS_OF_BYTES, _PRODUCTS, _STEPS})
# From this error on, in nats, a row pulls no harder: most laws are wrong for some of their kernels.
_PULLING = 0.15
_ROUNDS = 15
_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CacheRoofline:
    """Non-negative nanoseconds per unit of each term; the sum is never below `least_ns`."""

    ns: Mapping[str, float]
    least_ns: float = 1.0

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Compute the latency of each kernel. Raises `ValueError` where `inputs` lack a term."""
        return self._sum(inputs, _terms(inputs))

    def flops_share(self, inputs: Inputs) -> Floats:
        """Compute the share of FLOPs, and of what a code makes of them, in the latency of each kernel, 0 to 1."""
        terms = _terms(inputs)
        work = np.zeros(len(inputs))
        for name, amounts in terms.items():
            if name.startswith(_WORK):
                work += amounts * self.ns.get(name, 0.0)
        share: Floats = work / self._sum(inputs, terms)
        return share

    def _sum(self, inputs: Inputs, terms: Mapping[str, Floats]) -> Floats:
        unknown = sorted(self.ns.keys() - terms.keys())
        if unknown:
            raise ValueError(f"{inputs.kind}: the roofline has a term {unknown[0]!r}, which kernels here do not have")
        total = np.zeros(len(inputs))
        for name, amounts in terms.items():
            total += amounts * self.ns.get(name, 0.0)
        latency: Floats = np.maximum(total, self.least_ns)
        return latency


def fit_cache_roofline(inputs: Inputs, latency_ns: Floats) -> CacheRoofline:
    """Fit non-negative coefficients with the least error in nats, in which outliers count little (Huber's loss).

    Rounds of non-negative least squares of relative errors, each row weighted so that its relative error counts as its
    error in nats did in the round before.
    """
    from scipy.optimize import nnls

    terms = _terms(inputs)
    amounts = np.column_stack(list(terms.values()))
    relative = amounts / latency_ns[:, None]
    # columns differ by ten orders of magnitude; scaling keeps the solver's tolerance meaningful
    scale = np.maximum(np.sqrt((relative**2).mean(axis=0)), 1e-300)
    relative = relative / scale
    pull, least, best = np.ones(len(latency_ns)), np.inf, np.zeros(len(terms))
    for _ in range(_ROUNDS):
        solution, _ = nnls(relative * pull[:, None], pull, maxiter=_MOST_STEPS)
        ratio = np.maximum(relative @ solution, 1e-9)
        error = np.log(ratio)
        cost = _huber(error)
        if cost < least:
            least, best = cost, solution
        pull = _pull(error, ratio - 1)
    return CacheRoofline(
        ns={name: float(value) for name, value in zip(terms, best / scale, strict=True) if value > 0},
        # no predicted kernel is far faster than all measured ones
        least_ns=float(latency_ns.min()) / 4,
    )


def cache_roofline_from(values: Mapping[str, Any]) -> CacheRoofline:
    """Read the stored fields. Raises `KeyError` or `ValueError` on anything else."""
    ns, least_ns = values["ns"], values["least_ns"]
    if not all(isinstance(number, int | float) and number >= 0 for number in (least_ns, *ns.values())) or not least_ns:
        raise ValueError("a roofline's least_ns is not positive, or its ns is not a number, or negative")
    return CacheRoofline(ns={str(name): float(value) for name, value in ns.items()}, least_ns=float(least_ns))


def _terms(inputs: Inputs) -> dict[str, Floats]:
    bytes_of = {"moved": inputs.moved_bytes, "weight": inputs.weight_bytes, "written": inputs.written_bytes}
    terms = {"flops": inputs.flops, "constant": np.ones(len(inputs))} | bytes_of
    own = _terms_of_codes(inputs)
    copied = {name: own[name] for name in _AMOUNTS_OF_BYTES if name in own}
    for column, name in enumerate(inputs.names):
        if name.startswith(_BEYOND):
            share = -np.expm1(-inputs.matrix[:, column])
            terms |= {f"{one}_{name}": amount * share for one, amount in bytes_of.items()}
            moved_over_cache = np.expm1(inputs.matrix[:, column])
            for one, amount in copied.items():
                over_cache = amount / np.maximum(inputs.moved_bytes, 1.0) * moved_over_cache
                terms[f"{one}_{name}"] = amount * over_cache / (1 + over_cache)
    return terms | own


def _terms_of_codes(inputs: Inputs) -> dict[str, Floats]:
    """FLOPs and vector steps by code, and what codes copy and repeat; empty for kinds that do not tell it."""
    told = inputs if _NEEDED.issubset(inputs.names) else with_code_path(inputs)
    columns = dict(zip(told.names, told.matrix.T, strict=True))
    if _COPIED not in columns:
        return {}
    terms = {name: np.expm1(columns[name]) for name in (*_AMOUNTS_OF_BYTES, _PRODUCTS)}
    terms[_STEPS] = np.exp(columns[_STEPS])
    for name, flag in columns.items():
        if _BY_CODE in name:
            terms[f"flops_{name}"] = inputs.flops * flag
        if name.startswith(_BY_CODE):
            terms[f"{_STEPS}_{name}"] = terms[_STEPS] * flag
    return terms


def _huber(error: Floats) -> float:
    size = np.abs(error)
    return float(np.where(size <= _PULLING, size**2 / 2, _PULLING * (size - _PULLING / 2)).mean())


def _pull(error: Floats, relative: Floats) -> Floats:
    """Weights under which squared relative errors add up to Huber's loss of the errors in nats."""
    huber = np.minimum(1.0, _PULLING / np.maximum(np.abs(error), 1e-9))
    known = np.abs(relative) > 1e-6
    nats = np.where(known, error / np.where(known, relative, 1.0), 1.0)
    pull: Floats = np.sqrt(huber) * nats
    return pull
