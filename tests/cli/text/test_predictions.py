"""Kernels and predictions, as people read them."""

from dataclasses import replace

from opmark.cli.text.predictions import doubt_text, parameters_text, share_text, sides_text
from opmark.core.kernels.kernel import Kernel
from opmark.predictors.model.network import KernelRow


def test_shapes_are_products_and_what_is_off_is_left_out() -> None:
    params = {"axis": 2, "scale": True, "shift": False, "bias": "", "shape": (1, 128, 768), "groups": 0}
    assert parameters_text(params) == "axis=2 scale=yes shape=1×128×768"


def test_what_changes_nothing_is_left_out() -> None:
    params = {"kernel": (1, 1), "stride": (1, 1), "dilation": (2, 1), "pads": (0, 0, 0, 0), "groups": 1, "batch": 1}
    assert parameters_text(params) == "kernel=1×1 dilation=2,1 batch=1"


def test_shapes_stay_apart_and_an_order_is_no_product() -> None:
    params = {"shapes": ((1, 12, 8), (), (1,)), "arguments": (0, 2, 1)}
    assert parameters_text(params) == "shapes=1×12×8,scalar,1 arguments=0,2,1"


def test_a_row_tells_what_it_rests_on() -> None:
    row = KernelRow(kernel=Kernel.of("gemm", {}), count=1, ns=1, low_ns=1, high_ns=1, extrapolated=True)
    assert doubt_text(row) == "extrapolated"
    assert doubt_text(replace(row, exact=True, extrapolated=False, distance=0.0)) == "exact"
    assert doubt_text(replace(row, extrapolated=False, distance=0.12)) == "12% off a measured one"
    assert doubt_text(replace(row, extrapolated=False, distance=0.001)) == "< 1% off a measured one"
    assert doubt_text(replace(row, distance=7.0)) == "extrapolated, ×8 off a measured one"
    assert doubt_text(replace(row, derived="work ratio")) == "derived: work ratio"


def test_the_side_that_a_network_waits_for_comes_first() -> None:
    host, device = sides_text(7e6, 1e6), sides_text(1e6, 7e6)
    assert host.startswith("the host needs 7.00 ms")
    assert host.endswith("waits for the host")
    assert device.startswith("the device needs 7.00 ms")
    assert device.endswith("waits for the device")


def test_a_share_that_is_there_is_never_shown_as_nothing() -> None:
    assert [share_text(share) for share in (0.0, 1e-9, 0.0004, 0.0006, 1.0)] == [
        "0.0%",
        "< 0.1%",
        "< 0.1%",
        "0.1%",
        "100.0%",
    ]
