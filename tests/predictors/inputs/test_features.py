"""One function for training and prediction: names, logs, codes and machine-dependent columns."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS, kind_of, work_of
from opmark.predictors.inputs.features import Hardware, features, hardware_of


def column(name: str, kernels: tuple[Kernel, ...], hardware: Hardware | None = None) -> np.ndarray:
    inputs = features(kernels, None, hardware)
    return inputs.matrix[:, inputs.names.index(name)]


def test_sizes_are_logged_and_codes_are_not() -> None:
    kernels = law.kernels("gemm", 5)
    inputs = features(kernels)
    kind = kind_of(kernels[0])
    for row, kernel in enumerate(kernels):
        own = kind.features(kind.parse(kernel))
        for name, value in own.items():
            found = inputs.matrix[row, inputs.names.index(name)]
            assert found == pytest.approx(value if name in kind.categories else np.log1p(value))
        assert inputs.flops[row] == work_of(kernel).flops
        assert inputs.moved_bytes[row] == work_of(kernel).moved_bytes
    assert {inputs.names[index] for index in inputs.categorical} == {*kind.categories, "dtype_code"}


def test_a_smooth_surface_sees_neither_codes_nor_sawteeth() -> None:
    inputs = features(law.kernels("conv", 5), None, law.HARDWARE)
    seen = {inputs.names[index] for index in inputs.smooth}
    assert {"valid_taps", "log_flops", "channels_in_padding"} <= seen
    assert "channels_in_tail" in inputs.names
    assert not seen & {"channels_in_tail", "activation", "dtype_code"}
    assert inputs.take([1, 2]).smooth == inputs.smooth


@pytest.mark.parametrize("kind", KINDS.names())
def test_every_kind_has_finite_features_with_fixed_names(kind: str) -> None:
    if not KINDS.load(kind).space:
        pytest.skip(f"{kind} is never drawn")
    kernels = law.kernels(kind, 12, seed=3)
    inputs = features(kernels, None, law.HARDWARE)
    assert np.isfinite(inputs.matrix).all()
    assert len(set(inputs.names)) == len(inputs.names) == inputs.matrix.shape[1]
    alone = features(kernels[4:5], None, law.HARDWARE)
    assert alone.names == inputs.names
    assert np.array_equal(alone.matrix[0], inputs.matrix[4])


def test_padding_follows_the_vector_width() -> None:
    def gemm(n: int) -> Kernel:
        return Kernel.of("gemm", {"m": 4, "k": 64, "n": n})

    kernels = (gemm(32), gemm(33), gemm(40))
    wide = Hardware(vector_bytes=64)
    assert column("n_tail", kernels, wide).tolist() == pytest.approx([0, 1 / 16, 8 / 16])
    assert column("n_padding", kernels, wide).tolist() == pytest.approx([0, 48 / 33 - 1, 48 / 40 - 1])
    assert column("n_tail", kernels, Hardware(vector_bytes=32)).tolist() == pytest.approx([0, 1 / 8, 0])


def test_rows_can_be_taken() -> None:
    inputs = features(law.kernels("conv", 6))
    some = inputs.take(np.array([4, 1]))
    assert some.kernels == (inputs.kernels[4], inputs.kernels[1])
    assert np.array_equal(some.matrix, inputs.matrix[[4, 1]])
    assert len(inputs.take(np.zeros(6, dtype=bool))) == 0


def test_columns_can_be_left_out() -> None:
    inputs = features(law.kernels("pool", 3), None, law.HARDWARE)
    more = inputs.with_columns({"first": np.arange(3.0), "second": np.ones(3)})
    fewer = more.only({*inputs.names, "second"})
    assert fewer.names == (*inputs.names, "second")
    assert np.array_equal(fewer.matrix[:, -1], np.ones(3))
    assert (fewer.sizes, fewer.categorical) == (inputs.sizes, inputs.categorical)
    assert fewer.smooth == (*inputs.smooth, len(inputs.names))
    without = inputs.only([name for name in inputs.names if name != "log_intensity"])
    assert [without.names[column] for column in without.categorical] == [
        inputs.names[column] for column in inputs.categorical
    ]
    assert "log_intensity" not in [without.names[column] for column in without.smooth]


def test_a_foreign_parameter_is_refused() -> None:
    with pytest.raises(ContentError, match="not a gemm kernel"):
        features([Kernel.of("gemm", {"m": 4, "colour": "red"})])


def test_hardware_is_read_from_checked_facts() -> None:
    facts = {"level1_bytes": 49152, "level2_bytes": 1 << 20, "last_level_bytes": 16 << 20, "instruction_sets": "avx2"}
    found = hardware_of(facts)
    assert (found.vector_bytes, found.cache_bytes) == (32, (49152, 1 << 20, 16 << 20))
    assert found.last_level_cache_bytes == 16 << 20
    assert hardware_of({"instruction_sets": "avx2 avx512f"}).vector_bytes == 64
    assert hardware_of({}) == Hardware()


def test_a_gpu_is_described_by_the_waves_of_tiles_over_its_multiprocessors() -> None:
    gpu = hardware_of({"multiprocessors": 4, "last_level_bytes": 40 << 20})
    assert (gpu.multiprocessors, gpu.vector_bytes) == (4, 512)
    kernels = tuple(Kernel.of("gemm", {"m": m, "k": 64, "n": 256}) for m in (128, 256, 300))
    # two, four and six tiles of 128 × 128 on four multiprocessors
    assert np.exp(column("log_waves_128", kernels, gpu)).tolist() == pytest.approx([0.5, 1.0, 1.5])
    assert column("last_wave_128", kernels, gpu).tolist() == pytest.approx([0.5, 0.0, 0.5])
    assert np.exp(column("tile_padding_128", kernels, gpu)).tolist() == pytest.approx([1, 1, 384 / 300])
    assert not any("wave" in name for name in features(kernels, None, law.HARDWARE).names)
    assert np.isfinite(features(law.kernels("conv", 12), None, gpu).matrix).all()
    assert not any("wave" in name for name in features(law.kernels("softmax", 3), None, gpu).names)
