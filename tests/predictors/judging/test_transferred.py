"""A predictor made from few samples is judged on shape groups that it is made again without."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.measurements.measurement import Measurement
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.scores import split_sides
from opmark.predictors.judging.splits import SHAPE_GROUP
from opmark.predictors.judging.transferred import judge_transferred
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.manifest import TrainingRelease
from opmark.predictors.model.training import train_on
from opmark.predictors.transfer.adapted_bundle import transferred
from opmark.predictors.transfer.choosing import Donor

HERE = replace(law.TARGET, device="acme-2")


def slower() -> list[Measurement]:
    """The machine of `law`, but twice as slow, with noise of one percent."""
    found = []
    for kind in ("gemm", "softmax"):
        for kernel in law.kernels(kind, 60, 5):
            factor = 2 * math.exp(random.Random(kernel.key).gauss(0, 0.01))
            hot, rotated = factor * law.hot_ns(kernel), factor * law.rotated_ns(kernel)
            found.append(law.measurement(kernel, latency_hot_ns=hot, latency_rotated_ns=rotated))
    return found


def made(method: str) -> Bundle:
    known = train_on(law.rows(150), law.TARGET, hardware=law.HARDWARE)
    donor = Donor(name="acme-1/1.0.0:onnxruntime-cpu-t1", model=CostModel(known, missing="bytes-moved"))
    origin = TrainingRelease(device="acme-2", version="1.0.0", id="abc")
    return transferred(slower(), HERE, [donor], hardware=law.HARDWARE, origin=origin, methods=(method,))


@pytest.mark.parametrize("method", ["donor-offsets", "donor-residual", "roofline"])
def test_the_rows_that_judge_are_predicted_without_them(method: str) -> None:
    evidence = Evidence(target=HERE, measurements=tuple(slower()), hardware=law.HARDWARE)
    sides = split_sides(evidence, SHAPE_GROUP)
    judged = judge_transferred(sides, made(method))
    assert judged is not None
    assert len(judged.kinds) == len(judged.predicted_ns) == sum(len(test.inputs) for _, _, test in sides)
    assert set(judged.kinds) == {"gemm", "softmax"}
    error = np.abs(np.log(judged.predicted_ns / judged.measured_ns))
    assert np.median(error) < (0.15 if method != "roofline" else 1.0)


def test_nothing_to_judge_is_no_verdict() -> None:
    assert judge_transferred([], made("donor-offsets")) is None


def test_only_a_transferred_predictor_is_judged_so() -> None:
    evidence = Evidence(target=HERE, measurements=tuple(slower()), hardware=law.HARDWARE)
    with pytest.raises(KeyError):
        judge_transferred(split_sides(evidence, SHAPE_GROUP), train_on(law.rows(30), law.TARGET, hardware=law.HARDWARE))
