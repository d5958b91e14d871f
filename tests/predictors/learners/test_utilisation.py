"""The learner of utilisation extrapolates with its roofline, and reads back what it wrote."""

import numpy as np
import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import from_text, single_thread, to_text
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.fresh_results import has_fresh_results
from opmark.predictors.inputs.steps import with_code_path
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.utilisation import FittedUtilisation, Utilisation


def products(low: int, high: int, count: int) -> list[Kernel]:
    sizes = np.random.default_rng(5).integers(low, high, (count, 3)).tolist()
    return [Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32"}) for m, k, n in sizes]


def test_larger_kernels_than_any_measured_are_predicted_by_the_roofline() -> None:
    inputs = features(products(16, 256, 40))
    hot_ns = 500 + inputs.flops / 50
    found = Utilisation().fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=1.5 * hot_ns))
    larger = features(products(700, 900, 10))
    predicted = found.predict(larger)
    assert np.allclose(predicted.hot_ns, 500 + larger.flops / 50, rtol=0.2)
    assert np.allclose(predicted.rotated_ns / predicted.hot_ns, 1.5, rtol=0.05)


def test_it_reads_back_what_it_wrote() -> None:
    inputs = features(products(16, 256, 40))
    hot_ns = 500 + inputs.flops / 50
    learner = Utilisation()
    found = learner.fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan)))
    again = learner.restore(found.files())
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)
    assert np.array_equal(again.predict(inputs).rotated_ns, found.predict(inputs).hot_ns)


def fitted_where(slow: str, count: int = 110) -> FittedUtilisation:
    """A learner of products whose latency jumps by half unless 8 divides `slow`, or follows the roofline without."""
    inputs = features(products(16, 256, count))
    ragged = inputs.raw[slow] % 8 != 0 if slow else np.zeros(len(inputs), dtype=bool)
    hot_ns = (500 + inputs.flops / 50) * np.where(ragged, 1.5, 1.0)
    with single_thread():
        found = Utilisation().fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=1.1 * hot_ns))
    assert isinstance(found, FittedUtilisation)
    return found


def test_held_out_groups_decide_about_the_powers_of_two_in_sizes() -> None:
    found = fitted_where("n")
    assert "alignment" in found.further
    fresh = features([*products(64, 65, 1), *products(64, 200, 60)])
    ratio = found.predict(fresh).hot_ns / (500 + fresh.flops / 50)
    odd = fresh.raw["n"] % 8 != 0
    assert np.median(ratio[odd]) > 1.4
    assert np.median(ratio[~odd]) < 1.2
    assert np.allclose(found.predict(fresh).rotated_ns / found.predict(fresh).hot_ns, 1.1, rtol=0.05)
    plain = fitted_where("")
    assert "alignment" not in plain.further
    assert "columns.json" not in plain.files()
    again = Utilisation().restore(found.files())
    assert np.array_equal(again.predict(fresh).hot_ns, found.predict(fresh).hot_ns)


def test_held_out_groups_decide_about_what_vectors_leave() -> None:
    inputs = features(products(16, 256, 140))
    hot_ns = (500 + inputs.flops / 50) * (1 + 0.1 * (inputs.raw["n"] % 8))
    learner = Utilisation()
    with single_thread():
        found = learner.fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan)))
    assert isinstance(found, FittedUtilisation)
    columns = found.further["remainders"]
    assert columns is not None
    assert "n_over_8" in columns
    fresh = features(products(64, 200, 60))
    expected = (500 + fresh.flops / 50) * (1 + 0.1 * (fresh.raw["n"] % 8))
    assert np.median(np.abs(np.log(found.predict(fresh).hot_ns / expected))) < 0.1
    again = learner.restore(found.files())
    assert np.array_equal(again.predict(fresh).hot_ns, found.predict(fresh).hot_ns)


def test_columns_that_tell_no_rows_apart_are_left_out() -> None:
    same = [Kernel.of("gemm", {"m": m, "k": m, "n": 64, "dtype": "float32"}) for m in range(17, 97)]
    inputs = features(same)
    hot_ns = (500 + inputs.flops / 50) * (1 + 0.1 * (inputs.raw["m"] % 8))
    with single_thread():
        found = Utilisation().fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan)))
    assert isinstance(found, FittedUtilisation)
    columns = found.further["remainders"]
    assert columns is not None
    assert columns == tuple(f"m_over_{count}" for count in (4, 8, 16, 32, 64))


def test_types_of_several_sizes_do_not_tell_what_vectors_leave() -> None:
    sizes = np.random.default_rng(6).integers(16, 256, (140, 3)).tolist()
    mixed = [
        Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32" if m % 2 else "bfloat16"}) for m, k, n in sizes
    ]
    inputs = features(mixed)
    hot_ns = (500 + inputs.flops / 50) * (1 + 0.1 * (inputs.raw["n"] % 8))
    with single_thread():
        found = Utilisation().fit_group(inputs, Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan)))
    assert "remainders" not in found.further


@pytest.mark.parametrize("told", [True, None])
def test_older_bundles_use_all_columns_without_naming_them(told: bool | None) -> None:
    found = fitted_where("n")
    named = from_text(found.files()["columns.json"])
    whole = FittedUtilisation(
        roofline=found.roofline,
        above_roofline=found.above_roofline,
        rotated_above_hot=None,
        further=dict.fromkeys(found.further),
    )
    again = Utilisation().restore(whole.files() | {"columns.json": to_text(dict.fromkeys(named, told))})
    assert isinstance(again, FittedUtilisation)
    assert again.further == dict.fromkeys(named)
    copied = Utilisation().restore(again.files())
    assert isinstance(copied, FittedUtilisation)
    assert copied.further == again.further, "a predictor of another device holds a copy of its donor"


def sums(count: int) -> list[Kernel]:
    """Sums of 16 to 64 MiB, half of them in place."""
    return [
        Kernel.of(
            "elementwise",
            {
                "op": "add",
                "shapes": ((size, 2**16), (size, 2**16)),
                "constant": (),
                "exponent": None,
                "inplace": bool(number % 2),
                "dtype": "float32",
            },
        )
        for number, size in enumerate(np.random.default_rng(8).integers(64, 256, count).tolist())
    ]


def small_images(count: int) -> list[Kernel]:
    """Convolutions of small images with wide filters, so that padding reaches over some of them."""
    source = np.random.default_rng(9)
    found = []
    for _ in range(count):
        size, kernel, channels = source.integers(1, 9), source.choice([5, 7, 9]), 16 * source.integers(2, 33)
        sizes = {name: [int(value)] * 2 for name, value in (("size", size), ("kernel", kernel), ("stride", 1))}
        sizes |= {"pads": [int(kernel // 2)] * 4, "dilation": [1, 1], "batch": 1, "groups": 1, "bias": False}
        found.append(Kernel.of("conv", sizes | {"channels_in": int(channels), "channels_out": 64}))
    return found


def test_the_code_that_sizes_choose_takes_its_own_time() -> None:
    inputs = features(small_images(150))
    told = with_code_path(inputs)
    by_columns = told.matrix[:, told.names.index("by_columns")]
    assert 30 < by_columns.sum() < 120
    hot_ns = np.exp(told.matrix[:, told.names.index("vector_steps")]) * np.where(by_columns > 0, 8.0, 1.0)
    learner = Utilisation()
    with single_thread():
        found = learner.fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan)))
    assert isinstance(found, FittedUtilisation)
    assert "code_path" in found.further
    again = learner.restore(found.files())
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)


def test_results_that_malloc_does_not_keep_take_longer() -> None:
    inputs = features(sums(120))
    fresh = has_fresh_results(inputs)
    hot_ns = inputs.moved_bytes / 20 * np.where(fresh, 5.0, 1.0)
    learner = Utilisation()
    with single_thread():
        found = learner.fit(inputs, Latencies(hot_ns=hot_ns, rotated_ns=np.full(len(hot_ns), np.nan)))
    assert isinstance(found, FittedUtilisation)
    assert "fresh_results" in found.further
    error = np.abs(np.log(found.predict(inputs).hot_ns / hot_ns))
    assert np.quantile(error, 0.9) < 0.1
    again = learner.restore(found.files())
    assert np.array_equal(again.predict(inputs).hot_ns, found.predict(inputs).hot_ns)
    assert "fresh_results" not in fitted_where("").further
