"""Parts of an evaluation that are kept: an interrupted evaluation ends as an uninterrupted one."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.parallel.task_map import InTurn, MapProgress
from opmark.predictors.judging import finished_parts, scores
from opmark.predictors.judging.evidence import Evidence, Judged, joined
from opmark.predictors.judging.finished_parts import FinishedParts, JudgedPart, parts_of
from opmark.predictors.judging.scores import evaluate
from opmark.predictors.judging.splits import SPLIT_NAMES

ESTIMATORS = ("roofline", "nearest", "lightgbm")
NET = law.graph("net", law.kernels("gemm", 40)[30:], weight_bytes=1 << 20)


def evidence() -> Evidence:
    return Evidence(
        target=law.TARGET,
        measurements=law.rows(40, ("gemm", "softmax")),
        hardware=law.HARDWARE,
        networks=[law.network(NET, share=0.5, role="held-out")],
        graphs={NET.id: NET},
        release="0123456789abcdef",
    )


class Interrupted(InTurn):
    """Tasks until somebody presses Ctrl-C during the one with the number `at`."""

    def __init__(self, at: int) -> None:
        self.at = at

    def run(
        self, function: Callable[[Any, Any], Any], tasks: Sequence[Any], *, shared: Any
    ) -> Generator[tuple[int, Any], None, None]:
        for number, task in enumerate(tasks):
            if number == self.at:
                raise KeyboardInterrupt
            yield number, function(shared, task)


@pytest.mark.usefixtures("short")
def test_an_interrupted_evaluation_goes_on_and_ends_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(evidence(), ESTIMATORS, SPLIT_NAMES)
    assert len(parts) == len(ESTIMATORS) * (2 * 4 + 1)
    whole = evaluate(evidence(), estimators=ESTIMATORS)
    kept = FinishedParts(tmp_path, evidence())
    with pytest.raises(KeyboardInterrupt):
        evaluate(evidence(), estimators=ESTIMATORS, finished=kept, place=Interrupted(7))
    judged: list[JudgedPart] = []
    really = scores._judge_part
    monkeypatch.setattr(scores, "_judge_part", lambda own, part: judged.append(part) or really(own, part))
    said: list[str] = []
    steps: list[MapProgress] = []
    again = evaluate(evidence(), estimators=ESTIMATORS, finished=kept, notice=said.append, progress=steps.append)
    assert judged == parts[7:]
    assert again.scores == whole.scores
    assert again.judged.keys() == whole.judged.keys()
    assert "7 of 27 parts were judged before" in said[0]
    assert (steps[0].done, steps[-1].done, steps[-1].total, steps[-1].left_s) == (7, 27, 27, 0)
    assert evaluate(evidence(), estimators=ESTIMATORS, finished=kept).scores == whole.scores
    assert judged == parts[7:], "nothing is judged a second time"


def test_every_column_comes_back_bit_by_bit(tmp_path: Path) -> None:
    kept, part = FinishedParts(tmp_path, evidence()), JudgedPart(estimator="e", split="random", kind="gemm")
    numbers = np.array([0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 12.0])
    judged = Judged(
        kinds=("gemm",) * 5,
        families=tuple("abcde"),
        measured_ns=numbers,
        predicted_ns=numbers[::-1],
        variation=np.full(5, np.nan),
        kernel_sum_ns=np.array([np.nan, 1.0, 2.0, 3.0, 4.0]),
    )
    kept.keep(part, judged)
    found = FinishedParts(tmp_path, evidence()).known([part])[part]
    assert found is not None
    assert (found.kinds, found.families, found.deviation, found.low_ns) == (judged.kinds, judged.families, None, None)
    for name in ("measured_ns", "predicted_ns", "variation", "kernel_sum_ns"):
        assert getattr(found, name).tobytes() == getattr(judged, name).tobytes(), name
    kept.keep(part, None)
    assert kept.known([part]) == {part: None}
    kept.keep(part, replace(judged, predicted_ns=np.full(5, np.inf)))
    assert kept.known([part]) == {part: None}, "an infinite number has no JSON"


@pytest.mark.parametrize(
    "changed",
    [
        {"release": "another"},
        {"hardware": replace(law.HARDWARE, vector_bytes=32)},
        {"graphs": {}},
        {"target": replace(law.TARGET, version="9.9")},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_evidence_is_judged_again(tmp_path: Path, changed: dict[str, Any]) -> None:
    part = JudgedPart(estimator="e", split="random", kind="gemm")
    FinishedParts(tmp_path, evidence()).keep(part, None)
    other = FinishedParts(tmp_path, replace(evidence(), **changed))
    assert other.known([part]) == {}
    assert FinishedParts(tmp_path, evidence()).known([part, replace(part, kind="conv")]) == {part: None}


def test_other_code_is_judged_again_and_replaces_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = JudgedPart(estimator="e", split="random", kind="gemm")
    FinishedParts(tmp_path, evidence()).keep(part, None)
    before = [path for path in tmp_path.rglob("*") if path.is_file()]
    monkeypatch.setattr(finished_parts, "code_id", lambda *places: "other")
    later = FinishedParts(tmp_path, evidence())
    assert later.known([part]) == {}
    later.keep(part, None)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == before
    assert later.known([part]) == {part: None}


def test_damaged_parts_are_judged_again(tmp_path: Path) -> None:
    part = JudgedPart(estimator="e", split="random", kind="gemm")
    kept = FinishedParts(tmp_path, evidence())
    kept.keep(part, None)
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    assert kept.known([part]) == {}


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    kept = FinishedParts(tmp_path / "file", evidence())
    found = evaluate(evidence(), estimators=("roofline",), splits=("random",), finished=kept, notice=said.append)
    assert found.scores == evaluate(evidence(), estimators=("roofline",), splits=("random",)).scores
    assert len(said) == 1
    assert "an interrupted evaluation will begin again" in said[0]


def test_rows_are_joined_and_lacking_columns_lack() -> None:
    one = Judged(kinds=("a",), measured_ns=np.ones(1), predicted_ns=np.ones(1), variation=np.ones(1), low_ns=np.ones(1))
    both = joined([one, replace(one, kinds=("b",), low_ns=None)])
    assert both is not None
    assert (both.kinds, both.low_ns, both.measured_ns.tolist()) == (("a", "b"), None, [1.0, 1.0])
    assert joined([]) is None
