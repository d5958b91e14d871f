"""The host's time of a network on a device of its own: recovered from networks, and at least what the network takes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.core.kernels.work import Work
from opmark.core.measurements.measurement import Measurement
from opmark.kinds import KINDS
from opmark.predictors.composition.constant_fit import fit_queue
from opmark.predictors.composition.constants import NetworkConstants, NetworkSum
from opmark.predictors.composition.host_time import (
    HostCalls,
    HostConstants,
    MeasuredHost,
    fit_host,
    usual_enqueue_ns,
)

ENQUEUE_NS = {"conv": 40_000.0, "gemm": 30_000.0, "elementwise": 15_000.0}
TRUTH = HostConstants(enqueue_ns=ENQUEUE_NS, share=0.7, view_ns=2_000.0, python_call_ns=900.0)


def hosts(count: int = 30, noise: float = 0.0) -> Iterator[MeasuredHost]:
    source = np.random.default_rng(0)
    for number in range(count):
        calls = HostCalls(
            kinds={kind: int(source.integers(10, 200)) for kind in ENQUEUE_NS},
            views=int(source.integers(0, 700)),
            python_calls=float(source.integers(100, 3000)),
        )
        host_ns = TRUTH.time_ns(calls) * float(np.exp(noise * source.standard_normal()))
        yield MeasuredHost(family=f"f{number}", calls=calls, host_ns=host_ns, device_ns=0.1 * host_ns)


def network(host: MeasuredHost, device_ns: float, number: int = 0, hot_ns: float = 1e6) -> NetworkSum:
    return NetworkSum(
        network=f"n{number}",
        family=host.family,
        role="training",
        hot_ns=hot_ns,
        weights_ns=0.0,
        activations_ns=0.0,
        calls=host.calls.kernels + host.calls.views,
        footprint=1.0,
        footprint_bytes=1e6,
        latency_ns=max(host.host_ns, device_ns),
        host=replace(host, device_ns=device_ns),
    )


def test_it_is_recovered_from_networks_that_follow_it() -> None:
    found = fit_host(list(hosts()), ENQUEUE_NS)
    for one in hosts():
        assert found.time_ns(one.calls) == pytest.approx(one.host_ns, rel=0.02)
    assert found.share == pytest.approx(0.7, rel=0.1)


def test_the_deviation_is_that_of_noisy_hosts() -> None:
    quiet, noisy = fit_host(list(hosts()), ENQUEUE_NS), fit_host(list(hosts(60, noise=0.3)), ENQUEUE_NS)
    assert quiet.deviation < 0.08
    assert noisy.deviation == pytest.approx(0.3, rel=0.25)


def test_without_networks_the_usual_constants_hold() -> None:
    found = fit_host([], ENQUEUE_NS)
    assert found.enqueue_ns == ENQUEUE_NS
    calls = HostCalls(kinds={"gemm": 10}, views=0, python_calls=0.0)
    assert 0 < found.time_ns(calls) <= 10 * ENQUEUE_NS["gemm"]


def test_a_kind_without_rows_takes_the_usual_time_of_the_others() -> None:
    calls = HostCalls(kinds={"scan": 10}, views=0, python_calls=0.0)
    assert TRUTH.time_ns(calls) == pytest.approx(0.7 * 10 * 30_000.0)


@given(views=st.integers(0, 10_000), kernels=st.integers(0, 10_000), python_calls=st.floats(0, 1e5))
def test_more_work_takes_longer(views: int, kernels: int, python_calls: float) -> None:
    calls = HostCalls(kinds={"gemm": kernels}, views=views, python_calls=python_calls)
    more = HostCalls(kinds={"gemm": kernels + 1}, views=views + 1, python_calls=python_calls + 1)
    assert 0 <= TRUTH.time_ns(calls) < TRUTH.time_ns(more)


def test_the_usual_time_is_the_median_of_usable_rows() -> None:
    kind = KINDS.load("gemm")

    def row(number: int, status: str, overhead_ns: float | None) -> Measurement:
        parameters = kind.parameters(m=number, n=1, k=1)
        return Measurement(
            kernel=kind.kernel(parameters),
            work=Work(flops=1, read_bytes=1, written_bytes=1, weight_bytes=0),
            target="torch-cuda-t1",
            status=status,
            latency_hot_ns=1.0,
            overhead_ns=overhead_ns,
        )

    rows = [row(1, "ok", 10.0), row(2, "coarse", 30.0), row(3, "ok", 20.0), row(4, "failed", 1e6), row(5, "ok", None)]
    assert usual_enqueue_ns(rows) == {"gemm": 20.0}


def test_the_device_is_fitted_to_its_own_time_and_the_host_to_its_own() -> None:
    sums = []
    for number, host in enumerate(hosts()):
        hot_ns = 2e6 + 1e5 * number
        sums.append(network(host, hot_ns + 700.0 * host.calls.kernels, number, hot_ns))
    found = fit_queue(sums, enqueue_ns=ENQUEUE_NS, backend="torch-cuda")
    # Between kernels, and nothing for views.
    assert found.gap_ns == pytest.approx(700.0, rel=0.1)
    assert found.host is not None
    assert found.host.share == pytest.approx(0.7, rel=0.1)
    assert found.networks == tuple(sorted(one.network for one in sums))


def test_a_host_that_waits_for_results_tells_nothing_about_the_device() -> None:
    (host,) = hosts(1)
    assert replace(host, device_ns=0.9 * host.host_ns).waits(0.1 * host.host_ns)
    # Its kernels take that long.
    assert not replace(host, device_ns=0.9 * host.host_ns).waits(0.85 * host.host_ns)
    # A short device time cannot hide a host.
    assert not replace(host, device_ns=0.3 * host.host_ns).waits(0.1 * host.host_ns)
    waiting = network(host, 0.9 * host.host_ns, hot_ns=0.1 * host.host_ns)
    found = fit_queue([waiting], enqueue_ns=ENQUEUE_NS)
    assert found.gap_ns == NetworkConstants().gap_ns
    assert found.host is not None


def test_held_out_networks_are_refused() -> None:
    (host,) = hosts(1)
    # One whose host waits, too: it would teach the host.
    for device_ns in (1e6, host.host_ns):
        with pytest.raises(ContentError, match="training networks only"):
            fit_queue([replace(network(host, device_ns), role="held-out")], enqueue_ns=ENQUEUE_NS)
