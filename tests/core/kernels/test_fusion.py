"""The rule that decides whether two operators became one kernel, replayed on what nn-Meter published."""

import csv
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from opmark.core.kernels.fusion import (
    FUSED,
    NOT_FUSED,
    UNDECIDED,
    FusionMeasurement,
    decided,
    fold_fusion,
    obeys,
    pair_verdicts,
    saving,
    saving_interval,
)
from opmark.core.measurements.records import Done, FusionRound, FusionTrial

RULES = Path(__file__).parent / "published_fusion_rules.csv"


def published() -> list[dict[str, str]]:
    lines = [line for line in RULES.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def times(row: dict[str, str]) -> tuple[float, float, float]:
    return float(row["first"]), float(row["second"]), float(row["block"])


@pytest.mark.parametrize(
    ("backend", "rows", "contradicted"),
    [
        ("tflite_cpu", 76, {"dense_reshape", "conv_dwconv", "relu_conv", "reshape_dense"}),
        ("tflite_gpu", 76, set()),
        ("vpu", 76, {"reshape_dense"}),
    ],
)
def test_the_rule_gives_the_published_verdicts(backend: str, rows: int, contradicted: set[str]) -> None:
    """All but five, which their authors changed by hand from `fused` to `not fused`."""
    found = [row for row in published() if row["backend"] == backend]
    assert len(found) == rows
    assert {row["pair"] for row in found if obeys(*times(row)) != (row["fused"] == "1")} == contradicted
    assert all(row["fused"] == "0" for row in found if row["pair"] in contradicted)


def test_an_interval_leaves_undecided_what_the_authors_overruled() -> None:
    """Every published verdict that contradicts its own rule lies within two standard deviations of the threshold."""
    decisions = {}
    for row in published():
        if row["backend"] != "tflite_cpu":
            continue
        first, second, block = times(row)
        spread = 2 * math.hypot(*(float(row[name]) for name in ("first_sd", "second_sd", "block_sd")))
        half = spread / min(first, second)
        found = saving(first, second, block)
        decisions[row["pair"]] = (decided(found - half, found + half), row["fused"] == "1", obeys(first, second, block))
    overruled = [verdict for verdict, shipped, rule in decisions.values() if shipped != rule]
    assert overruled == [UNDECIDED] * 4
    decided_rows = [(verdict, shipped) for verdict, shipped, _ in decisions.values() if verdict != UNDECIDED]
    assert len(decided_rows) >= 5
    assert all((verdict == FUSED) == shipped for verdict, shipped in decided_rows)


@pytest.mark.parametrize(("block_ns", "verdict"), [(100_500.0, FUSED), (119_500.0, NOT_FUSED), (110_000.0, UNDECIDED)])
def test_rounds_become_a_verdict(block_ns: float, verdict: str) -> None:
    chance = random.Random(1)
    rounds = [tuple(ns * chance.uniform(0.99, 1.01) for ns in (100_000.0, 20_000.0, block_ns)) for _ in range(10)]
    found, low, high = saving_interval(rounds, seed="x")  # type: ignore[arg-type]
    assert low <= found <= high
    assert decided(low, high) == verdict
    assert saving_interval(rounds, seed="x") == (found, low, high)  # type: ignore[arg-type]


def test_what_slows_a_whole_round_does_not_widen_the_interval() -> None:
    slow = [(100.0 * f, 50.0 * f, 101.0 * f) for f in (1.0, 1.3, 1.7, 1.1, 1.5, 2.0)]
    found, low, high = saving_interval(slow)
    assert low == pytest.approx(found) == high == pytest.approx(0.98)
    with pytest.raises(ValueError, match="no rounds"):
        saving_interval([])


def fold(rounds: list[FusionRound], status: str = "ok", overhead_ns: float = 1000.0) -> FusionMeasurement:
    trial = FusionTrial(trial="t", target="null-t1", pair="conv-relu", first="conv", second="relu", shape="1x8x8x8")
    done = Done(trial="t", status=status, reason="" if status == "ok" else "no such kernel")
    return fold_fusion(trial, done, rounds, overhead_ns=overhead_ns, suite="fusion", environment_id="e")


def one_round(first: float, second: float, block: float, **other: object) -> FusionRound:
    samples = {"first_ns": (first, 9e9), "second_ns": (second, 9e9), "block_ns": (block, 9e9)}
    fields = {"trial": "t", "process": 0, "clean": ("10", "10", "10"), "white_box": FUSED, "kernels": "Conv(conv relu)"}
    return FusionRound(**{**fields, **samples, **other})  # type: ignore[arg-type]


def test_a_row_has_overhead_and_interrupted_samples_removed() -> None:
    row = fold([one_round(101_000.0, 21_000.0, 102_000.0, process=process) for process in (0, 1)])
    assert (row.first_ns, row.second_ns, row.block_ns) == (100_000.0, 20_000.0, 101_000.0)
    assert row.saving == pytest.approx(0.95)
    assert (row.white_box, row.black_box, row.processes, row.clean_fraction) == (FUSED, FUSED, 2, 0.5)


def test_a_part_no_longer_than_a_call_is_undecided() -> None:
    row = fold([one_round(101_000.0, 900.0, 101_500.0)] * 4)
    assert row.black_box == UNDECIDED
    assert row.second_ns == 1.0


def test_a_failed_trial_has_no_numbers() -> None:
    row = fold([], status="skipped")
    assert (row.status, row.reason, row.first_ns, row.white_box) == ("skipped", "no such kernel", None, UNDECIDED)
    assert pair_verdicts([row]) == ()


def shape_row(white: str, black: str, *, shape: str = "s", inserted: int = 0) -> FusionMeasurement:
    return FusionMeasurement(
        target="t",
        pair="a-b",
        first="a",
        second="b",
        shape=shape,
        status="ok",
        white_box=white,
        black_box=black,
        saving=0.9,
        inserted_saved=inserted,
    )


@pytest.mark.parametrize(
    ("shapes", "verdict"),
    [
        ([FUSED, FUSED, FUSED], FUSED),
        ([FUSED, FUSED, UNDECIDED], FUSED),
        ([FUSED, UNDECIDED, UNDECIDED], UNDECIDED),
        ([FUSED, FUSED, NOT_FUSED], UNDECIDED),
        ([NOT_FUSED, NOT_FUSED, UNDECIDED], NOT_FUSED),
    ],
)
def test_a_pair_needs_a_majority_of_shapes_and_no_contradiction(shapes: list[str], verdict: str) -> None:
    (found,) = pair_verdicts([shape_row(FUSED, black) for black in shapes])
    assert (found.black_box, found.white_box, found.shapes) == (verdict, FUSED, 3)
    assert found.differ == (verdict == NOT_FUSED)


def test_a_difference_is_explained() -> None:
    (found,) = pair_verdicts([shape_row(NOT_FUSED, FUSED, inserted=2)] * 3)
    assert found.differ
    assert "2 fewer layout reorders" in found.note
    (other,) = pair_verdicts([shape_row(NOT_FUSED, FUSED)] * 3)
    assert "cache" in other.note
    (third,) = pair_verdicts([shape_row(FUSED, NOT_FUSED)] * 3)
    assert "too little" in third.note
    slower = replace(shape_row(FUSED, NOT_FUSED), saving=-3.0, saving_low=-4.0, saving_high=-2.0)
    (fourth,) = pair_verdicts([slower] * 3)
    assert "slower than the two apart" in fourth.note
