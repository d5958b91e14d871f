"""Records survive a round trip, and damage to them is refused."""

from pathlib import Path

import pytest

from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.schema import convert
from opmark.leaderboards.fidelity.records import (
    ExecutedPlacement,
    FidelityRecord,
    load_record,
    problem_path,
    record_path,
    save_record,
    stored_records,
)
from opmark.leaderboards.problem.placement import Solution

RECORD = FidelityRecord(
    device="box",
    track="inference-latency",
    problem="resnet-18-2onnx",
    problem_id="0123",
    model="resnet-18",
    dimensions={"batch": 2},
    placements=(
        ExecutedPlacement(
            placers=("heft", "peft"),
            solution=Solution(device={"conv": "core0"}, order={"core0": ("conv",)}),
            predicted_ns=5,
            visits_ns=((6, 7), (6, 6)),
        ),
    ),
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = record_path(tmp_path, RECORD.device, RECORD.problem)
    save_record(RECORD, path)
    assert load_record(path) == RECORD
    assert list(stored_records(tmp_path)) == [RECORD]
    assert problem_path(tmp_path, "box", "p").parent.parent == path.parent


def test_a_changed_time_is_noticed(tmp_path: Path) -> None:
    path = record_path(tmp_path, RECORD.device, RECORD.problem)
    save_record(RECORD, path)
    text = path.read_text()
    changed = text.replace('"predicted_ns":5', '"predicted_ns":6')
    assert changed != text
    path.write_text(changed)
    with pytest.raises(ContentError, match=r"resnet-18-2onnx"):
        load_record(path)


def test_there_may_be_no_records(tmp_path: Path) -> None:
    assert list(stored_records(tmp_path)) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"visits_ns": [[]]}, "visits_ns: every visit needs executions"),
        ({"visits_ns": [[0]]}, "visits_ns: every visit needs executions"),
        ({"predicted_ns": 0}, "predicted_ns: must be positive"),
        ({"states": [[[0.0, 0.0]]]}, "states: one is needed for each execution"),
        ({"states": [[[0.0]] * 2] * 2}, "states: each is a pair"),
        ({"states": [[[0.0, 99.0]] * 2] * 2}, "states: a logarithm lies between"),
    ],
)
def test_executions_that_cannot_be_are_refused(changes: dict[str, object], sentence: str) -> None:
    content = {**plain(RECORD.placements[0]), **changes}
    with pytest.raises(ContentError, match=sentence):
        convert(content, ExecutedPlacement, where="p.json")
