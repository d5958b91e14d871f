"""Signals between workers: numbers of crossings in a pipe, which arrive in any order or not at all."""

import io
import json
import os

import pytest

from opmark.bench.clock.turns import Part, reading_ns
from opmark.bench.execution.worker import StepWorker, _Inbox, serve
from opmark.core.errors import MeasurementError


def test_signals_are_kept_until_they_are_asked_for() -> None:
    reading, writing = os.pipe()
    inbox = _Inbox(reading, patience_s=5)
    os.write(writing, b"".join(number.to_bytes(4, "little") for number in (3, 1)))
    inbox.wait_for(1)
    inbox.wait_for(3)
    os.close(reading)
    os.close(writing)


def test_a_missing_signal_ends_the_wait() -> None:
    reading, writing = os.pipe()
    with pytest.raises(MeasurementError, match="nothing arrived from another device"):
        _Inbox(reading, patience_s=0.01).wait_for(0)
    os.close(reading)
    os.close(writing)


def test_a_failure_is_an_answer() -> None:
    answers = io.StringIO()
    serve(io.StringIO(json.dumps({"do": "sizes", "tensors": ["x"]}) + "\n"), answers, StepWorker())
    assert json.loads(answers.getvalue())["failed"].startswith("AssertionError")


def test_a_sentinel_is_read_once_as_beside_a_kernel() -> None:
    # A second reading would find its lines in the caches, where the first one had to fetch them.
    calls = []
    worker, part = StepWorker(), Part(call=lambda: calls.append(0), calls=3)
    reading_ns(worker._clock, part)
    once = len(calls)
    worker._sentinels = {"memory": part}
    assert set(worker.sense({"at_ns": 0})["readings"]) == {"memory"}
    assert len(calls) == 2 * once
