"""The mixture of trees and a smooth surface."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.learners import residual
from opmark.predictors.learners.residual import LEAST_ROWS, fit_residual, residual_from, tried_residual
from opmark.predictors.learners.roofline import fit_roofline
from opmark.predictors.learners.trees import ensemble_from, fit_trees, settings


def above_roofline(kernels: tuple) -> tuple[Inputs, np.ndarray]:
    inputs = features(kernels, None, law.HARDWARE)
    hot = np.array([law.hot_ns(kernel) for kernel in kernels])
    roofline = fit_roofline(inputs.flops, inputs.moved_bytes, hot)
    return inputs, np.log(hot / roofline.latency_ns(inputs.flops, inputs.moved_bytes))


def test_it_halves_what_the_roofline_leaves() -> None:
    inputs, target = above_roofline(law.kernels("gemm", 160))
    learn, judge = np.arange(160) < 110, np.arange(160) >= 110
    found = fit_residual(inputs.take(learn), target[learn])
    error = np.abs(found.predict(inputs.take(judge)) - target[judge]).mean()
    assert error < 0.5 * np.abs(target[judge] - np.median(target[learn])).mean()
    assert found.held_out is not None
    assert np.abs(found.held_out - target[learn]).mean() < np.abs(target[learn]).mean()


def test_text_restores_it_to_the_last_bit() -> None:
    inputs, target = above_roofline(law.kernels("conv", 60))
    found = fit_residual(inputs, target)
    files = found.files("hot")
    again = residual_from(files, "hot")
    assert np.array_equal(found.predict(inputs), again.predict(inputs))
    others, _ = above_roofline(law.kernels("conv", 40, seed=2))
    assert np.array_equal(found.predict(others), again.predict(others))
    assert again.files("hot") == files
    (rows,) = set(files) - {"hot-smooth.json", "hot-trees.txt"}
    assert rows.startswith("rows-")


def test_labels_of_the_same_kernels_share_their_rows() -> None:
    inputs, target = above_roofline(law.kernels("conv", 60))
    hot, rotated = fit_residual(inputs, target).files("hot"), fit_residual(inputs, 0.5 * target**2).files("rotated")
    assert hot.keys() & rotated.keys() == {name for name in hot if name.startswith("rows-")}
    fewer = fit_residual(inputs.take(slice(50)), target[:50]).files("rotated")
    assert hot.keys().isdisjoint(fewer)


def test_more_rows_find_better_lengths_or_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, target = above_roofline(law.kernels("conv", 90))
    monkeypatch.setattr(residual, "SEARCH_ROWS", 30)
    monkeypatch.setattr(residual, "_REFINED_SEARCH_ROWS", 60)
    tried = tried_residual(inputs, target)
    refined = tried.refined()
    assert refined.error <= tried.error
    assert refined is tried or refined.error < tried.error
    again = refined.fitted()
    assert again.held_out is not None
    assert float(np.abs(again.held_out - target).mean()) == refined.error
    trees = tried_residual(inputs, target, smooth=False)
    assert trees.refined() is trees


def test_a_brief_trial_tells_nearly_what_a_whole_one_tells() -> None:
    inputs, target = above_roofline(law.kernels("conv", 90))
    whole, brief = tried_residual(inputs, target), tried_residual(inputs, target, brief=True)
    assert brief.error < 1.5 * whole.error
    assert brief.error < np.abs(target - np.median(target)).mean()


def test_a_search_goes_on_from_the_lengths_of_fewer_columns() -> None:
    inputs, target = above_roofline(law.kernels("conv", 60))
    fewer = tried_residual(inputs, target, brief=True)
    more = inputs.with_columns({"noise": np.random.default_rng(0).normal(size=len(inputs))})
    start = fewer.lengths_for(more)
    assert start is not None
    assert fewer.process is not None
    assert len(start) == len(fewer.process.hyper) + 1
    assert set(fewer.process.hyper) <= set(start)
    assert tried_residual(inputs, target, smooth=False).lengths_for(more) is None


def test_few_rows_have_been_searched_already() -> None:
    inputs, target = above_roofline(law.kernels("gemm", 40))
    tried = tried_residual(inputs, target)
    assert tried.refined() is tried


@pytest.mark.parametrize("count", [1, 2, LEAST_ROWS - 1])
def test_a_handful_of_rows_gives_their_median(count: int) -> None:
    inputs, target = above_roofline(law.kernels("gemm", 20))
    found = fit_residual(inputs.take(slice(count)), target[:count])
    assert found.predict(inputs) == pytest.approx(np.full(20, np.median(target[:count])))
    assert found.held_out is not None
    assert len(found.held_out) == count
    assert np.isfinite(found.held_out).all()


def test_predictions_stay_near_what_was_seen() -> None:
    inputs, target = above_roofline(law.kernels("gemm", 60))
    found = fit_residual(inputs, target)
    far = features(law.kernels("gemm", 40, seed=5), None, law.HARDWARE)
    far.matrix[:] *= 3
    predicted = found.predict(far)
    assert predicted.min() >= target.min() - 0.26
    assert predicted.max() <= target.max() + 0.26


def test_trees_are_the_same_twice_and_survive_text() -> None:
    inputs, target = above_roofline(law.kernels("gemm", 80))
    folds = np.arange(80) % 4
    text, held_out = fit_trees(inputs.matrix, target, inputs.categorical, folds)
    second, _ = fit_trees(inputs.matrix, target, inputs.categorical, folds)
    assert text == second
    predicted = ensemble_from(text).predict(inputs.matrix)
    assert np.abs(predicted - target).mean() < np.abs(held_out - target).mean()
    with pytest.raises(ValueError, match="not a LightGBM"):
        ensemble_from("nonsense")


def test_few_rows_get_small_trees() -> None:
    assert settings(40)["num_leaves"] < settings(400)["num_leaves"] <= 31
    assert settings(40)["num_threads"] == 1


def test_trees_see_one_column_of_those_that_order_rows_alike() -> None:
    inputs, target = above_roofline(law.kernels("gemm", 80))
    copies = [name for name in inputs.names if name.startswith(("beyond_cache_", "weights_beyond_cache_"))]
    assert len(copies) == 2 * len(law.HARDWARE.cache_bytes)
    kept = {"beyond": inputs.names.index("log_bytes"), "weights": inputs.names.index("log_weight_bytes")}
    for name in copies:
        column, own = inputs.matrix[:, inputs.names.index(name)], inputs.matrix[:, kept[name.partition("_")[0]]]
        assert np.array_equal(np.argsort(column, kind="stable"), np.argsort(own, kind="stable"))
    trees = fit_residual(inputs, target, smooth=False).trees
    used = {int(word) for line in trees.splitlines() if line.startswith("split_feature=") for word in line[14:].split()}
    assert used
    assert not {inputs.names[column] for column in used} & set(copies)


def test_what_was_tried_is_what_is_fitted() -> None:
    inputs, target = above_roofline(law.kernels("conv", 60))
    tried = tried_residual(inputs, target)
    fitted, whole = tried.fitted(), fit_residual(inputs, target)
    assert np.array_equal(tried.held_out, whole.held_out)
    assert fitted.files("hot") == whole.files("hot")
    assert tried.error == pytest.approx(float(np.abs(whole.held_out - target).mean()))
