"""The noise floor of kernels and networks: from standard errors, from processes, or from repeats."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.noise_floors import kernel_noise, network_noise_floor, noise_floor

NET = law.graph("net", law.kernels("gemm", 4))


def test_it_is_unbiased_and_absent_where_unknown() -> None:
    measured = np.linspace(100, 1000, 40)
    floor = noise_floor(measured, np.full(40, 0.03))
    assert floor["median"] == pytest.approx(0.03, rel=0.03)
    assert abs(floor["signed-median"] or 0) < 0.001
    assert floor["acc5"] == 1
    assert noise_floor(measured, np.full(40, np.nan)) == {}


def test_standard_errors_come_before_variations() -> None:
    measured = np.full(4000, 1000.0)
    unknown = np.full(4000, np.nan)
    floor = noise_floor(measured, np.full(4000, 0.5), np.full(4000, 0.05))
    # two labels of ±5 % each are ±7.1 % apart, half of them by at most 0.674 of that
    assert floor["median"] == pytest.approx(0.0477, rel=0.05)
    assert floor["acc10"] == pytest.approx(0.843, abs=0.02)
    assert noise_floor(measured, unknown, np.full(4000, 0.05)) == floor
    some = np.where(np.arange(4000) < 2000, 0.05, np.nan)
    assert noise_floor(measured, np.full(4000, 0.5), some)["acc15"] == pytest.approx(0.48, abs=0.02)


def test_tables_tell_both_doubts() -> None:
    from opmark.predictors.inputs.tables import tables

    known = tables(law.rows(5, ("gemm",), standard_error_hot=0.02), law.HARDWARE)["gemm"]
    older = tables(law.rows(5, ("gemm",)), law.HARDWARE)["gemm"]
    assert kernel_noise(known)[1].tolist() == [0.02] * 5
    assert np.isnan(kernel_noise(older)[1]).all()
    assert kernel_noise(older)[0].tolist() == [0.01] * 5


def test_networks_without_repeats_have_the_floor_of_their_labels() -> None:
    networks = [law.network(NET, share=0.5, standard_error=0.02) for _ in range(400)]
    evidence = Evidence(target=law.TARGET, measurements=(), networks=networks)
    assert network_noise_floor(evidence)["median"] == pytest.approx(0.0191, rel=0.15)
    again = replace(networks[0], latency_ns=1.04 * (networks[0].latency_ns or 0))
    repeated = replace(evidence, network_retests=[(networks[0], again)])
    assert network_noise_floor(repeated)["median"] == pytest.approx(0.04)
    assert network_noise_floor(replace(evidence, networks=[law.network(NET, share=0.5)])) == {}
