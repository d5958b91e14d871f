"""From one machine's predictor to another: what helps is chosen, and what judges was never sampled."""

import math
import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import NothingSelectedError
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import Measurement
from opmark.predictors.inputs.tables import tables
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import train_on
from opmark.predictors.transfer.choosing import Donor, divergence, nearest_donor
from opmark.predictors.transfer.curve import TransferPoint, transfer_curve
from opmark.predictors.transfer.methods import METHODS, Rows

KINDS = ("gemm", "softmax")


def rows(latency: Callable[[Kernel], float], count: int = 150) -> list[Measurement]:
    """A machine on which every kernel takes `latency`, give or take 1 %."""
    return [
        law.measurement(kernel, latency_hot_ns=latency(kernel) * math.exp(random.Random(kernel.key).gauss(0, 0.01)))
        for kind in KINDS
        for kernel in law.kernels(kind, count, 5)
    ]


def twice(kernel: Kernel) -> float:
    """Much like the machine of `law`, but slower: products by 2, softmax by 3."""
    return law.hot_ns(kernel) * (2 if kernel.kind == "gemm" else 3)


def unlike(kernel: Kernel) -> float:
    """A machine on which time has to do with nothing but the last digit of a hash."""
    return 1000.0 * (1 + int(kernel.key, 16) % 97)


@cache
def donor() -> Bundle:
    return train_on(law.rows(200, KINDS), law.TARGET, hardware=law.HARDWARE)


@cache
def stranger() -> Bundle:
    return train_on(rows(unlike, 60), law.TARGET, hardware=law.HARDWARE)


def donors() -> list[Donor]:
    return [
        Donor(name="stranger", model=CostModel(stranger(), missing="bytes-moved")),
        Donor(name="sister", model=CostModel(donor(), missing="bytes-moved")),
    ]


@cache
def curve() -> tuple[TransferPoint, ...]:
    return tuple(transfer_curve(rows(twice), donors(), hardware=law.HARDWARE, samples=(20, 100, 10_000)))


def test_the_donor_that_diverges_least_is_taken() -> None:
    probes = list(tables(rows(twice, 40), law.HARDWARE).values())
    found, distance = nearest_donor(probes, donors())
    assert found.name == "sister"
    assert distance == divergence(probes, found.model)
    assert distance < 0.5 * divergence(probes, donors()[0].model)


def test_every_method_is_on_the_curve_and_one_is_chosen_at_each_number_of_samples() -> None:
    points = curve()
    assert {point.samples for point in points} == {20, 100}
    for samples in (20, 100):
        own = [point for point in points if point.samples == samples]
        assert [point.method for point in own] == list(METHODS)
        assert sum(point.chosen for point in own) == 1
        chosen = next(point for point in own if point.chosen)
        assert chosen.validation == min(point.validation for point in own)
        assert {point.n for point in own} == {own[0].n}
        assert {point.donor for point in own} == {"", "sister"}


def test_a_sister_helps_where_samples_are_few() -> None:
    few = {point.method: point for point in curve() if point.samples == 20}
    assert few["donor-offsets"].median < 0.7 * few["scratch"].median
    assert few["donor-offsets"].median < few["one-scalar"].median
    chosen = next(point for point in few.values() if point.chosen)
    assert chosen.donor == "sister"
    assert chosen.median < 0.15


def test_points_tell_the_device_s_minutes() -> None:
    points = transfer_curve(rows(twice, 30), donors()[1:], hardware=law.HARDWARE, samples=(20,), kernels_per_second=4.0)
    assert {(point.samples, point.minutes) for point in points} == {(20, 20 / 4 / 60)}


def test_what_judges_was_not_sampled() -> None:
    measured = rows(twice)
    judged = next(point for point in curve()).n
    everything = sum(len(table.inputs) for table in tables(measured, law.HARDWARE).values())
    assert 0.1 * everything < judged < 0.45 * everything


def test_a_stranger_is_not_chosen_for_long() -> None:
    points = transfer_curve(rows(twice), donors()[:1], hardware=law.HARDWARE, samples=(100,))
    chosen = next(point for point in points if point.chosen)
    assert chosen.method in {"scratch", "roofline", "ridge"}


def test_a_kind_without_samples_still_gets_an_answer() -> None:
    known, asked = (
        Rows(tables=tuple(found), donor_ns=tuple(donor_ns(table.inputs.kernels) for table in found))
        for found in (
            list(tables(rows(twice, 12)[:12], law.HARDWARE).values()),
            list(tables(rows(twice, 30), law.HARDWARE).values()),
        )
    )
    for method in METHODS.values():
        predicted = method(known).hot_ns(asked)
        assert predicted.shape == asked.hot_ns.shape
        assert np.isfinite(predicted).all()
        assert (predicted > 0).all()


def donor_ns(kernels: tuple[Kernel, ...]) -> np.ndarray:
    return np.array([law.hot_ns(kernel) for kernel in kernels])


def test_nothing_to_transfer_is_said() -> None:
    with pytest.raises(NothingSelectedError, match="nothing to transfer between"):
        transfer_curve(rows(twice, 20), [], hardware=law.HARDWARE)
    with pytest.raises(NothingSelectedError):
        transfer_curve([], donors(), hardware=law.HARDWARE)
