"""Integer programs, solved."""

import numpy as np

from opmark.leaderboards.bounds.integer_program import IntegerProgram


def test_an_integer_program() -> None:
    # the least cost that covers 2a + 3b >= 4 with cost >= a + b, a and b being 0 or 1
    program = IntegerProgram()
    a, b = program.binary(), program.binary()
    program.add({0: 1.0, a: -1.0, b: -1.0}, 0.0)
    program.add({a: 2.0, b: 3.0}, 4.0)
    values = program.solve(5)
    assert values is not None
    assert np.rint(values).tolist() == [2, 1, 1]
    program.add({a: -1.0}, 0.0)
    assert program.solve(5) is None, "now there is none"
    assert program.solve(0) is None
