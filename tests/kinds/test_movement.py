"""Every movement that ONNX spells runs as spelled; drawing makes each of them."""

import random

import pytest
from tests.kinds.single_node import promised, results

from opmark.core.kernels.kind import Setting
from opmark.kinds import KINDS, of_onnx
from opmark.kinds._onnx.movement import NAMES
from opmark.kinds._onnx.nodes import qualified
from opmark.kinds._shared import movement_draw
from opmark.kinds._shared.movement import ARGUMENTS, VIEWS, Movement
from opmark.models.capture.onnx_session import block_width

EXAMPLES = [
    Movement(op="transpose", shapes=((2, 3, 4),), arguments=(1, 2, 0)),
    Movement(op="concat", shapes=((2, 3), (2, 5), (2, 1)), arguments=(1,), constant=(2,)),
    Movement(op="qlinear-concat", shapes=((2, 3), (2, 5)), arguments=(1,), constant=(1,), dtype="uint8"),
    Movement(op="split", shapes=((4, 6),), arguments=(1, 1, 2, 3)),
    Movement(op="slice", shapes=((6, 8),), arguments=(1, 7, 5, -1, 2, -3)),
    Movement(op="pad", shapes=((3, 4),), arguments=(1, 0, 0, 2), mode="reflect"),
    Movement(op="expand", shapes=((3, 1),), arguments=(2, 3, 4)),
    Movement(op="tile", shapes=((2, 3),), arguments=(2, 2)),
    Movement(op="cast", shapes=((2, 3),), to="int64"),
    Movement(op="reshape", shapes=((2, 6),), arguments=(3, 4)),
    Movement(op="flatten", shapes=((2, 3, 4),), arguments=(2,)),
    Movement(op="squeeze", shapes=((2, 1, 3),), arguments=(1,)),
    Movement(op="unsqueeze", shapes=((2, 3),), arguments=(0, 3)),
    Movement(op="identity", shapes=((2, 3),)),
    Movement(op="depth-to-space", shapes=((1, 8, 2, 3),), arguments=(2,), mode="CRD"),
    Movement(op="space-to-depth", shapes=((1, 2, 4, 6),), arguments=(2,)),
    Movement(op="constant-of-shape", shapes=(), arguments=(2, 3), dtype="int64"),
    Movement(op="range", shapes=(), arguments=(7,), dtype="int64"),
    Movement(op="shape", shapes=((2, 3, 4),)),
    Movement(op="trilu", shapes=((4, 4),), arguments=(0, 1)),
]
BLOCKED = [
    Movement(op="reorder-input", shapes=((1, 32, 4, 4),), arguments=(0,), block=16),
    Movement(op="reorder-output", shapes=((1, 32, 4, 4),), arguments=(20, 0), block=16),
]


@pytest.mark.parametrize("p", EXAMPLES, ids=lambda p: p.op)
def test_a_movement_runs_and_is_recognised(p: Movement) -> None:
    kind = KINDS.load("movement")
    made = kind.to_onnx(p)
    assert made is not None
    assert results(made) == promised(made)
    assert of_onnx(made)[0] == kind.kernel(p)
    assert kind.vary(p, 1, 1) == p
    other = kind.to_onnx(kind.vary(p, 2, 2))
    assert other is not None
    assert results(other) == promised(other)


@pytest.mark.parametrize("p", BLOCKED, ids=lambda p: p.op)
def test_a_reorder_is_recognised(p: Movement) -> None:
    kind = KINDS.load("movement")
    made = kind.to_onnx(p)
    assert made is not None
    assert of_onnx(made)[0] == kind.kernel(p)
    if block_width() == p.block:
        assert results(made) == promised(made)


def test_every_spelling_has_an_example() -> None:
    kind = KINDS.load("movement")
    nodes = [kind.to_onnx(p) for p in (*EXAMPLES, *BLOCKED)]
    assert {qualified(made) for made in nodes if made is not None} == NAMES - {"Dropout"}


def test_views_move_nothing_and_copies_do() -> None:
    kind = KINDS.load("movement")
    for p in (*EXAMPLES, *BLOCKED):
        assert (kind.work(p).moved_bytes == 0) == (p.op in VIEWS)


@pytest.mark.parametrize("language", ["onnx", "aten"])
def test_drawing_makes_every_operation_of_the_language(language: str) -> None:
    kind = KINDS.load("movement")
    source = random.Random(0)
    setting = Setting(language=language)
    points = ({name: axis.at(source.random()) for name, axis in kind.space.items()} for _ in range(3000))
    made = {drawn["op"] for values in points if (drawn := movement_draw.draw(values, setting))}
    named = set(kind.space["op"].values)
    assert made | named <= set(ARGUMENTS)
    assert {"transpose", "concat", "cast", "expand"} <= made
    assert ("reorder-input" in made) == (language == "onnx")
    # Cutting is a view in torch, and only a copy of what was cut takes time.
    assert made == named if language == "onnx" else "copy" in made
