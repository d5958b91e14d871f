"""What every family promises about every kernel it draws, whichever it is."""

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.single_node import promised, results

from opmark.core.canonical import canonical_json
from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Kind, Setting
from opmark.kinds import GENERIC, KINDS, kind_of, of_onnx, work_of
from opmark.models.capture.onnx_session import block_width

NAMES = KINDS.names()
DRAWS = 40
SMALL_FLOPS = 20_000_000
SMALL_BYTES = 8_000_000


def point(kind: Kind[Any], fractions: list[float]) -> dict[str, Any]:
    return {name: axis.at(fraction) for (name, axis), fraction in zip(kind.space.items(), fractions, strict=False)}


def drawn(kind: Kind[Any], count: int, setting: Setting) -> list[Any]:
    source = random.Random(kind.name)
    points = (point(kind, [source.random() for _ in kind.space]) for _ in range(count * 20))
    found = (kind.draw(values, setting) for values in points)
    return [p for _, p in zip(range(count), (p for p in found if p is not None), strict=False)]


def first_language(kind: Kind[Any]) -> str:
    return "onnx" if "onnx" in kind.languages else kind.languages[0]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_drawn_kernel_is_whole(name: str, data: st.DataObject) -> None:
    kind = KINDS.load(name)
    language = data.draw(st.sampled_from(sorted(kind.languages)))
    fractions = data.draw(
        st.lists(st.floats(0, 1, exclude_max=True), min_size=len(kind.space), max_size=len(kind.space))
    )
    p = kind.draw(point(kind, fractions), Setting(language=language))
    if p is None:
        return
    kernel = kind.kernel(p)
    assert kind.parse(kernel) == p
    assert canonical_json(kernel.params)
    work = kind.work(p)
    assert work.flops >= 0
    assert work.read_bytes >= 0
    assert work.written_bytes >= 0
    assert 0 <= work.weight_bytes <= work.read_bytes
    assert not kind.matrix or work.flops > 0
    assert all(math.isfinite(value) for value in kind.features(p).values())
    assert set(kind.categories) <= set(kind.features(p))
    assert all(math.isfinite(value) for value in kind.details(p).values())
    assert not set(kind.details(p)) & set(kind.features(p))
    assert all(math.isfinite(value) for value in kind.steps(p).values())
    assert all(math.isfinite(value) for value in kind.code_path(p).values())
    assert kind.shape_group(p)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    width=st.sampled_from((0.25, 0.5, 1.0, 1.5, 2.0)),
    extent=st.sampled_from((0.5, 1.0, 1.7)),
)
def test_a_relative_is_a_kernel_of_the_same_family(name: str, seed: int, width: float, extent: float) -> None:
    kind = KINDS.load(name)
    source = random.Random(seed)
    p = kind.draw(point(kind, [source.random() for _ in kind.space]), Setting(language=first_language(kind)))
    if p is None:
        return
    assert kind.vary(p, 1, 1) == p
    relative = kind.vary(p, width, extent)
    assert kind.parse(kind.kernel(relative)) == relative
    assert kind.features(relative).keys() == kind.features(p).keys()
    node = kind.to_onnx(relative)
    if node is not None:
        assert kind.from_onnx(node) == relative
    if kind.languages == ("aten",):
        call = kind.to_aten(relative)
        assert call is None or kind.from_aten(call) == relative


@pytest.mark.parametrize("name", NAMES)
def test_features_have_the_same_names_for_every_kernel(name: str) -> None:
    kind = KINDS.load(name)
    kernels = drawn(kind, DRAWS, Setting(language=first_language(kind)))
    assert len(kernels) == DRAWS
    assert len({tuple(kind.features(p)) for p in kernels}) == 1
    assert len({tuple(kind.details(p)) for p in kernels}) == 1
    assert len({tuple(kind.steps(p)) for p in kernels}) == 1
    assert len({tuple(kind.code_path(p)) for p in kernels}) == 1
    assert len({kind.kernel(p).key for p in kernels}) == len(set(kernels))


@pytest.mark.parametrize("name", [name for name in NAMES if "onnx" in KINDS.load(name).languages])
def test_onnx_runtime_runs_what_is_drawn(name: str) -> None:
    kind = KINDS.load(name)
    ran = 0
    for p in drawn(kind, 80, Setting(language="onnx", block=block_width())):
        small = kind.vary(p, 0.25, 0.3)
        work = kind.work(small)
        node = kind.to_onnx(small)
        if node is None or work.flops > SMALL_FLOPS or work.moved_bytes > SMALL_BYTES:
            continue
        assert results(node) == promised(node), small
        if name != GENERIC:
            assert of_onnx(node)[0] == kind.kernel(small)
        ran += 1
    assert ran >= 20


def test_a_kernel_leads_back_to_its_family() -> None:
    kind = KINDS.load("gemm")
    p = drawn(kind, 1, Setting(language="onnx"))[0]
    kernel = kind.kernel(p)
    assert kind_of(kernel) is kind
    assert work_of(kernel) == kind.work(p)


@pytest.mark.parametrize("params", [{"m": 1}, {"m": 1, "k": 1, "n": 1, "colour": "red"}])
def test_a_kernel_with_missing_or_unknown_parameters_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ContentError, match="not a gemm kernel"):
        work_of(Kernel.of("gemm", params))
