"""Signals between workers: numbers of crossings in a pipe, which arrive in any order or not at all."""

import io
import json
import os

import pytest

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
