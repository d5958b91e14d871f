from dataclasses import replace

import pytest

from opmark.core.kernels.call import OnnxNode
from opmark.kinds.pool import KIND, Pool

AVERAGE = Pool(
    op="average", batch=1, channels=8, size=(8, 8), kernel=(3, 3), stride=(2, 2), pads=(1, 1, 1, 1), dilation=(1, 1)
)


def node(p: Pool) -> OnnxNode:
    made = KIND.to_onnx(p)
    assert made is not None
    return made


@pytest.mark.parametrize("dilatable", [False, True])
def test_which_averaging_runs_depends_on_the_operator_set(dilatable: bool) -> None:
    p = replace(AVERAGE, dilatable=dilatable)
    assert (node(p).opset >= 19) == dilatable
    assert KIND.from_onnx(node(p)) == p
    assert KIND.kernel(p).key != KIND.kernel(replace(p, dilatable=not dilatable)).key


def test_maxima_do_not_know_the_difference() -> None:
    p = replace(AVERAGE, op="max")
    assert KIND.from_onnx(replace(node(p), opset=12)) == KIND.from_onnx(node(p)) == p
