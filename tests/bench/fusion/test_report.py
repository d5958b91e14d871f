"""Pairs of operators: what they are, how they are measured, and how a report survives."""

import sys
from pathlib import Path

import pytest

from opmark.bench.fusion import report as fusion
from opmark.bench.fusion.operators import SHAPES, chain, names, result, shapes
from opmark.bench.fusion.pairs import PAIRS, Pair, pairs_named
from opmark.bench.fusion.report import _planned, measure_fusion
from opmark.bench.fusion.worker import described, joined
from opmark.bench.run.progress import RunProgress
from opmark.bench.worker.backend import Piece, target_named
from opmark.core.errors import ContentError, UnknownNameError, UsageError
from opmark.core.kernels.fusion import FUSED, NOT_FUSED
from opmark.core.measurements.journal import read_journal

SOME = pairs_named(["conv+relu", "conv+bn", "linear-bias+gelu"])
# A worker in which pairs go wrong in the two ways a runtime can.
BROKEN = (
    sys.executable,
    "-c",
    "import os\n"
    "from opmark.bench.fusion.worker import FusionWorker, main\n"
    "def fusion(self, request):\n"
    "    if 'bn' in request['operators']: os._exit(3)\n"
    "    raise RuntimeError('no memory for it')\n"
    "FusionWorker.fusion = fusion\n"
    "main(FusionWorker)",
)


def test_every_pair_is_tested_at_three_shapes_on_onnx_and_made_of_known_operators() -> None:
    assert len(PAIRS) > 79
    for pair in PAIRS.values():
        assert pair.name == f"{pair.first}+{pair.second}"
        assert set(pair.operators) <= set(names())
        assert 0 < pair.split < len(pair.operators)
        assert len(shapes(pair.domain, "onnx")) >= 3
        for shape in shapes(pair.domain, "onnx"):
            kernels = chain(pair.operators, shape, "onnx")
            assert len(kernels) == len(pair.operators)
    assert set(names()) == {name for pair in PAIRS.values() for name in pair.operators}


def test_names_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="conv\\+rilu"):
        pairs_named(["conv+rilu"])
    with pytest.raises(UnknownNameError, match="convolve"):
        chain(["convolve"], (1, 8, 8, 8), "onnx")
    with pytest.raises(UsageError, match="no aten kernel"):
        chain(["reshape"], (1, 8, 8, 8), "aten")
    assert pairs_named([]) == tuple(PAIRS.values())
    assert [pair.name for pair in pairs_named(["conv+bn", "conv+relu", "conv+bn"])] == ["conv+bn", "conv+relu"]


def test_a_chain_follows_the_shapes() -> None:
    kernels = chain(["conv", "maxpool", "reshape"], (1, 8, 12, 12), "onnx")
    assert [result(kernel, "onnx") for kernel in kernels] == [(1, 8, 12, 12), (1, 8, 6, 6), (1, 288)]
    assert shapes("tokens", "aten")[0] == SHAPES["tokens"][0][1:]


def test_a_kernel_that_covers_both_sides_of_the_seam_is_fused() -> None:
    pieces = (Piece(name="Conv", covers=(0, 1)), Piece(name="ReorderOutput", covers=()), Piece(name="Add", covers=(2,)))
    assert joined(pieces, 1)
    assert not joined(pieces, 2)
    assert described(pieces, ["conv", "relu", "add"]) == "Conv(conv relu), ReorderOutput, Add(add)"


def test_a_report_finds_what_the_formula_fuses_and_resumes(tmp_path: Path) -> None:
    journal = tmp_path / "fusion.jsonl"
    seen: list[RunProgress] = []
    report = measure_fusion(SOME[:2], ["null-t1"], journal=journal, quality="quick", progress=seen.append)
    assert report.complete
    assert [(item.pair, item.white_box, item.black_box) for item in report.verdicts] == [
        ("conv+relu", FUSED, FUSED),
        ("conv+bn", NOT_FUSED, NOT_FUSED),
    ]
    assert not any(item.differ for item in report.verdicts)
    assert report.verdicts[0].saving == pytest.approx(1.0, abs=0.2)
    assert report.verdicts[0].kernels == "conv(conv relu)"
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 6, 6)
    assert len(report.rows) == len(read_journal(journal).fusions) == 6

    size = journal.stat().st_size
    again = measure_fusion(SOME, ["null-t1"], journal=journal, quality="quick")
    assert [item.pair for item in again.verdicts] == ["conv+relu", "conv+bn", "linear-bias+gelu"]
    assert again.rows[:6] == report.rows
    third = measure_fusion(SOME[:1], ["null-t1"], journal=journal, quality="quick")
    assert [item.pair for item in third.verdicts] == ["conv+relu"]
    # Nothing was measured again: only the session is new.
    lines = journal.read_text()[size:].splitlines()
    assert sum('"type":"fusion-round"' in line for line in lines) == 3 * 3
    with pytest.raises(ContentError, match="belongs to suite"):
        measure_fusion(SOME, ["null-t1"], journal=journal, quality="full")


def test_what_goes_wrong_is_a_row_with_its_reason(tmp_path: Path) -> None:
    pairs = SOME[:2]
    report = measure_fusion(pairs, ["null-t1"], journal=tmp_path / "j.jsonl", quality="quick", command=BROKEN)
    assert report.complete
    assert report.verdicts == ()
    assert {row.reason for row in report.failures} == {"RuntimeError: no memory for it", "exited with code 3"}


def test_a_budget_leaves_the_rest_for_later(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    report = measure_fusion(SOME[:1], ["null-t1"], journal=journal, quality="quick", budget_s=0.0)
    assert not report.complete
    assert report.rows == ()


def test_a_runtime_without_the_operator_skips_it() -> None:
    _, target = target_named("null-t1", "here")
    (planned, *_) = _planned(target, SOME[:1])
    assert planned.refused == ""
    assert planned.trial.shape == "1x64x28x28"
    pair = Pair(first="conv", second="reshape", domain="plane")
    torch = pytest.importorskip("torch")
    assert torch
    _, eager = target_named("torch-eager-t1", "here")
    assert {item.refused for item in _planned(eager, [pair])} == {"no aten kernel for reshape"}
    assert fusion.SUITE == "fusion"
