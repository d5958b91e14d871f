"""The roofline of caches finds a law it can express, and extrapolates it."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.predictors.inputs.arrays import from_text, to_text
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.steps import with_code_path
from opmark.predictors.learners.extrapolation.cache_roofline import (
    CacheRoofline,
    cache_roofline_from,
    fit_cache_roofline,
)


def kernels(seed: int = 0) -> Inputs:
    return features(law.kernels("gemm", 150, seed), None, law.HARDWARE)


KNOWN = CacheRoofline(
    ns={"flops": 0.01, "constant": 900.0, "moved": 0.02, "weight_beyond_cache_2": 0.05, "written_beyond_cache_3": 0.4}
)


def test_it_recovers_its_own_law() -> None:
    inputs = kernels()
    found = fit_cache_roofline(inputs, KNOWN.latency_ns(inputs))
    others = kernels(1)
    assert found.latency_ns(others) == pytest.approx(KNOWN.latency_ns(others), rel=0.01)
    assert found.ns["flops"] == pytest.approx(0.01, rel=0.02)


def test_a_few_kernels_of_another_law_do_not_bend_it() -> None:
    inputs = kernels()
    latency_ns = KNOWN.latency_ns(inputs)
    latency_ns[::10] *= 4
    found = fit_cache_roofline(inputs, latency_ns)
    error = np.abs(np.log(found.latency_ns(inputs) / KNOWN.latency_ns(inputs)))
    assert np.median(error) < 0.03


def test_coefficients_never_go_negative() -> None:
    inputs = kernels()
    found = fit_cache_roofline(inputs, 1e12 / inputs.flops)
    assert min(found.ns.values()) >= 0
    assert (found.latency_ns(inputs) > 0).all()


def test_the_share_of_flops_is_that_of_their_time() -> None:
    inputs = kernels()
    share = KNOWN.flops_share(inputs)
    assert share == pytest.approx(0.01 * inputs.flops / KNOWN.latency_ns(inputs))
    assert share.min() >= 0
    assert share.max() <= 1


def test_each_code_of_a_library_has_its_time_and_its_copies() -> None:
    # A code that takes four times as long per FLOP, and copies that cost more beyond the caches.
    known = CacheRoofline(
        ns={
            "constant": 900.0,
            "flops": 0.01,
            "flops_by_columns": 0.03,
            "copied_bytes": 0.05,
            "copied_bytes_beyond_cache_3": 0.2,
        }
    )
    inputs, others = (features(law.kernels("conv", 150, seed), None, law.HARDWARE) for seed in (0, 1))
    found = fit_cache_roofline(inputs, known.latency_ns(inputs))
    assert found.latency_ns(others) == pytest.approx(known.latency_ns(others), rel=0.02)
    told = with_code_path(others)
    by_columns = told.matrix[:, told.names.index("by_columns")] > 0
    assert by_columns.any()
    work_ns = others.flops * np.where(by_columns, 0.04, 0.01)
    assert known.flops_share(others) == pytest.approx(work_ns / known.latency_ns(others))


def test_text_restores_it() -> None:
    inputs = kernels()
    again = cache_roofline_from(from_text(to_text({"ns": KNOWN.ns, "least_ns": KNOWN.least_ns})))
    assert np.array_equal(again.latency_ns(inputs), KNOWN.latency_ns(inputs))


@pytest.mark.parametrize(("ns", "least_ns"), [({"flops": -1.0}, 1.0), ({"flops": "fast"}, 1.0), ({"flops": 1.0}, 0.0)])
def test_foreign_numbers_are_refused(ns: dict, least_ns: float) -> None:
    with pytest.raises(ValueError, match="a roofline's least_ns"):
        cache_roofline_from({"ns": ns, "least_ns": least_ns})


def test_a_term_of_other_kernels_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond_cache_9"):
        CacheRoofline(ns={"moved_beyond_cache_9": 1.0}).latency_ns(kernels())


@pytest.mark.parametrize("left_out", ["column_bytes", "copied_bytes", "products", "vector_steps"])
def test_columns_that_a_learner_left_out_are_told_again(left_out: str) -> None:
    usual = features(law.kernels("conv", 60), None, law.HARDWARE)
    whole = with_code_path(usual)
    fewer = whole.only([name for name in whole.names if name != left_out])
    latency_ns = KNOWN.latency_ns(whole)
    found, same = fit_cache_roofline(fewer, latency_ns), fit_cache_roofline(whole, latency_ns)
    assert found.latency_ns(fewer) == pytest.approx(same.latency_ns(whole))
