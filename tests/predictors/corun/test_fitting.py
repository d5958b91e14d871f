"""The slowdown model finds a law of its own form, judges itself honestly, and survives its file."""

from pathlib import Path

import numpy as np
import pytest

from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.corun import CorunMeasurement, robust_mean
from opmark.core.schema import convert
from opmark.core.workspace import Workspace
from opmark.kinds import KINDS
from opmark.predictors.corun.files import corun_path, find_corun, load_corun, save_corun
from opmark.predictors.corun.fitting import fitted_slowdown, held_out
from opmark.predictors.corun.slowdown import CorunModel

LAW = CorunModel(
    device="box",
    target="null-t1",
    level2_bytes=1 << 20,
    sensitivity=(-1.0, 0.8, 0.5, 0.0),
    pressure=(-0.5, 0.5, 0.4, 0.0),
    stressors={"memory-100": 1.0, "cache-512": 0.1},
    trials=0,
)


def gemm(side: int, rows: int) -> Kernel:
    kind = KINDS.load("gemm")
    return kind.kernel(kind.parameters(m=rows, k=side, n=side))


KERNELS = [gemm(side, rows) for side in (16, 64, 256, 512, 1024) for rows in (1, 8, 64)]


def rows(noise: float = 0.0) -> list[CorunMeasurement]:
    """Measurements that follow the law, with an error of `noise`."""
    random = np.random.default_rng(0)
    found = []
    for kernel in KERNELS:
        found += [row(kernel, name, None) for name in LAW.stressors]
        found += [row(kernel, other.key, other) for other in KERNELS if other != kernel]
    factors = LAW.predicted(found) * np.exp(noise * random.standard_normal(len(found)))
    return [
        CorunMeasurement(
            trial=one.trial, target=one.target, kernel=one.kernel, neighbour=one.neighbour, beside=one.beside,
            factor=float(factor), standard_error=max(noise, 0.002),
        )
        for one, factor in zip(found, factors, strict=True)
    ]  # fmt: skip


def row(kernel: Kernel, name: str, beside: Kernel | None) -> CorunMeasurement:
    trial = content_id([kernel.key, name])
    return CorunMeasurement(trial=trial, target="null-t1", kernel=kernel, neighbour=name, beside=beside)


def test_a_law_of_its_form_is_found() -> None:
    model = fitted_slowdown(rows(), device="box", target="null-t1", level2_bytes=1 << 20)
    assert model.judgement is not None
    assert model.judgement.pairs == sum(map(held_out, rows()))
    assert model.judgement.median_error < 0.01
    assert model.judgement.constant_error > model.judgement.median_error
    assert (model.factors(KERNELS, KERNELS[::-1]) >= 1).all()


def test_noise_does_not_lead_it_astray() -> None:
    model = fitted_slowdown(rows(0.05), device="box", target="null-t1", level2_bytes=1 << 20)
    truth = LAW.factors(KERNELS, KERNELS[::-1])
    assert np.median(np.abs(model.factors(KERNELS, KERNELS[::-1]) / truth - 1)) < 0.03


def test_held_out_pairs_are_kernels_and_stay_the_same() -> None:
    chosen = [one for one in rows() if held_out(one)]
    assert chosen
    assert all(one.beside is not None for one in chosen)
    assert chosen == [one for one in rows() if held_out(one)]


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(NothingSelectedError, match="too few"):
        fitted_slowdown(rows()[:5], device="box", target="null-t1", level2_bytes=1 << 20)


def test_factors_by_kind_follow_from_the_kernels() -> None:
    table = LAW.interference([KERNELS[0]])
    assert table == {"gemm": {"gemm": pytest.approx(LAW.factors(KERNELS[:1], KERNELS[:1])[0], abs=1e-6)}}


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert find_corun(workspace, "box", "null-t1") is None
    path = corun_path(workspace, "box", "null-t1")
    save_corun(LAW, path)
    assert load_corun(path) == find_corun(workspace, "box", "null-t1") == LAW
    path.write_text(path.read_text().replace('"trials": 0', '"trials": 1'))
    with pytest.raises(ContentError, match=r"null-t1\.json"):
        load_corun(path)


def test_the_mean_of_factors_is_robust() -> None:
    mean, error = robust_mean(np.array([0.1] * 9 + [3.0]))
    assert mean == pytest.approx(0.1, abs=0.01)
    assert error < 0.02


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sensitivity": [1.0]}, "sensitivity: 4 weights are needed, not 1"),
        ({"pressure": []}, "pressure: 4 weights are needed, not 0"),
        ({"level2_bytes": 0}, "level2_bytes: must be positive"),
    ],
)
def test_a_model_with_other_weights_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ContentError, match=sentence):
        convert({**plain(LAW), **changes}, CorunModel, where="null-t1.json")
