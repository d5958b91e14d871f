"""`benchmarks/fusion.py`: nn-Meter's published verdicts are given again, and stand beside a release's."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from opmark.core.kernels.fusion import FUSED, NOT_FUSED, UNDECIDED, FusionMeasurement

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fusion.py"


@pytest.fixture(scope="module")
def fusion() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fusion_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measured(pair: str, verdict: str) -> list[FusionMeasurement]:
    first, second = pair.split("+")
    one = FusionMeasurement(
        target="onnxruntime-cpu-t1",
        pair=pair,
        first=first,
        second=second,
        shape="s",
        status="ok",
        white_box=verdict,
        black_box=verdict,
        saving=0.9,
    )
    return [one] * 3


def test_the_rule_gives_all_but_five_published_verdicts(fusion: ModuleType) -> None:
    cpu, gpu, vpu = fusion.replay(fusion.published())
    assert [(one.backend, one.pairs, one.same) for one in (cpu, gpu, vpu)] == [
        ("tflite_cpu", 76, 72),
        ("tflite_gpu", 76, 76),
        ("vpu", 76, 75),
    ]
    assert vpu.contradicted == ("reshape_dense",)
    assert cpu.decided == cpu.decided_same >= 5


def test_pairs_that_both_measured_stand_side_by_side(fusion: ModuleType) -> None:
    rows = fusion.published()
    told = {row.ours: row.verdict for row in rows if row.backend == "vpu"}
    agreed = {pair for pair in told if len({row.verdict for row in rows if row.ours == pair}) == 1}
    opposite = {FUSED: NOT_FUSED, NOT_FUSED: FUSED}
    right, wrong, unsure = sorted(agreed)[:3]
    found = fusion.beside(
        rows,
        [
            *measured(right, told[right]),
            *measured(wrong, opposite[told[wrong]]),
            *measured(unsure, UNDECIDED),
            *measured("linear+gelu", FUSED),
        ],
    )
    assert [one.pair for one in found] == [right, wrong, unsure]
    assert set(found[0].published) == {"tflite_cpu", "tflite_gpu", "vpu"}
    assert fusion.agreement(found) == (1, 2)
    assert {"fc+relu", "conv+maxpool"} <= set(told)


def test_it_prints_both_tables(
    fusion: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(sys, "argv", ["fusion.py"])
    fusion.main()
    printed = capsys.readouterr().out
    assert "changed by its authors: conv_dwconv, dense_reshape, relu_conv, reshape_dense" in printed
    assert "our clock" in printed or "no release here" in printed
