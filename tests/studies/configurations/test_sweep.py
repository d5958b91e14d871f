"""The best of many configurations, the front of them, and the ones that may be better."""

import sys
from pathlib import Path

import pytest

from opmark.core.shipped import shipped_content
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import path_of
from opmark.studies.configurations.sweep import (
    FASTEST,
    MOST,
    Configuration,
    Sweep,
    SweepRequest,
    batch_of,
    knows,
    sweep,
)


def one(target: str, batch: int, latency_ns: float, error: float = 0.1, type_name: str = "float32") -> Configuration:
    return Configuration(
        target=target,
        type=type_name,
        sizes={"batch": batch},
        batch=batch,
        latency_ns=latency_ns,
        low_ns=latency_ns / (1 + error),
        high_ns=latency_ns * (1 + error),
    )


SMALL, MIDDLE, LARGE = one("a/t", 1, 10e6), one("a/t", 4, 30e6), one("a/t", 8, 90e6)
OTHER = one("b/t", 4, 32e6)


def test_every_goal_has_its_best() -> None:
    found = Sweep(model="net", configurations=(SMALL, MIDDLE, LARGE, OTHER), limit_ns=20e6)
    assert found.best == {FASTEST: SMALL, MOST: MIDDLE, f"{MOST} within 20.0 ms": SMALL}
    assert found.goals_of(SMALL) == (FASTEST, f"{MOST} within 20.0 ms")
    assert found.goals_of(LARGE) == ()


def test_no_configuration_within_the_limit_is_none() -> None:
    found = Sweep(model="net", configurations=(SMALL,), limit_ns=5e6)
    assert found.best[f"{MOST} within 5.00 ms"] is None
    assert found.rivals(f"{MOST} within 5.00 ms") == ()


def test_the_front_holds_what_nothing_beats() -> None:
    found = Sweep(model="net", configurations=(LARGE, OTHER, MIDDLE, SMALL))
    assert found.front == (SMALL, MIDDLE)


def test_rivals_are_other_targets_within_the_interval() -> None:
    found = Sweep(model="net", configurations=(SMALL, MIDDLE, LARGE, OTHER))
    assert found.rivals(MOST) == (OTHER,)
    assert found.rivals(FASTEST) == ()
    close = one("a/t", 1, 10.5e6, type_name="bf16")
    assert Sweep(model="net", configurations=(SMALL, close)).rivals(FASTEST) == (close,)


def test_the_document_tells_all_of_it() -> None:
    document = Sweep(model="net", configurations=(SMALL, LARGE)).document()
    first, second = document["configurations"]
    assert (first["best_for"], first["front"]) == ((FASTEST, MOST), True)
    assert (second["best_for"], second["front"]) == ((), False)
    assert second["samples_per_second"] == pytest.approx(8 / 0.09)


def test_sizes_are_combined_in_order() -> None:
    asked = SweepRequest(model="net", sizes={"batch": (1, 2), "size": (160, 224)})
    assert asked.combinations[:2] == [{"batch": 1, "size": 160}, {"batch": 1, "size": 224}]
    assert len(asked.combinations) == 4
    assert SweepRequest(model="net").combinations == [{}]


@pytest.mark.parametrize(
    ("sizes", "batch"),
    [({"batch": 8, "size": 224}, 8), ({"length": 3, "batch_size": 4}, 4), ({"N": 2}, 2), ({"x.0": 5, "x.2": 7}, 5)],
)
def test_the_batch_has_many_names(sizes: dict[str, int], batch: int) -> None:
    assert batch_of(sizes) == batch
    assert batch_of({"size": 224}) == 1


def test_a_type_that_nobody_measured_is_not_known() -> None:
    content = shipped_content()
    own, foreign = (load(path_of(content, name)) for name in ("torch-eager-t1", "nvidia-a100/torch-cuda-t1"))
    assert [knows(own, name) for name in ("float32", "bf16", "int8-static")] == [True, True, True]
    assert [knows(foreign, name) for name in ("float32", "bf16")] == [True, False]


def test_sizes_that_need_a_package_are_named_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    bundle = load(path_of(shipped_content(), "onnxruntime-cpu-t1"))
    asked = SweepRequest(model="resnet-50", types=("float32",), sizes={"batch": (1, 8)}, cache=tmp_path)
    found = sweep(asked, [bundle])
    assert [one.batch for one in found.configurations] == [1]
    reason = found.left_out[0].reason
    assert reason == "for batch=8 this needs transformers, which is not installed (pip install 'opmark[models]')"
