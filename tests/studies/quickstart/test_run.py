"""A quickstart that was too short says so, and goes on when it gets more time."""

from pathlib import Path

import pytest

from opmark.core.errors import MeasurementError
from opmark.studies.quickstart.run import quickstart

# Networks come before kernels: a short run measures nothing else.
SUITE = """
schema: 1
name: short
targets: [null-a-t1, null-b-t1]
quality: quick
networks:
  held_out: [inception-tiny]
"""


def test_minutes_that_measure_no_kernel_are_too_short(tmp_path: Path) -> None:
    suite = tmp_path / "short.yaml"
    suite.write_text(SUITE)
    for minutes in (0.5, 20.0):  # the second run is not told that all was measured
        with pytest.raises(MeasurementError, match="too short to measure kernels of null-a-t1 and null-b-t1") as caught:
            quickstart(tmp_path, suite, minutes=minutes)
        assert caught.value.hint == f"give it more time: opmark quickstart --minutes {max(6, 2 * minutes):g}"
    assert not list((tmp_path / "datasets").iterdir())
