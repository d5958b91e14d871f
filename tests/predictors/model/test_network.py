"""The sum of a network's kernels."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.kinds import work_of
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.network import weight_shares
from opmark.predictors.model.training import train_on


def test_weights_have_their_share_of_a_kernels_bytes() -> None:
    chosen = law.kernels("gemm", 3)
    one = law.graph("net", chosen)
    parts = CostModel(train_on(law.rows(20, ("gemm",)), law.TARGET)).parts(one)
    expected = [work_of(kernel).weight_bytes / work_of(kernel).moved_bytes for kernel in parts.kernels]
    assert weight_shares(one, parts) == pytest.approx(np.array(expected))
