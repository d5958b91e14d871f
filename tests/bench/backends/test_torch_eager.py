"""Eager torch as a backend: tensors as asked for, chains that chain, copies that share nothing."""

import weakref

import pytest

from opmark.bench.backends._torch.calls import Calls, refusal
from opmark.bench.backends._torch.tensors import chain_argument, operands
from opmark.bench.backends.torch_eager import BACKEND
from opmark.bench.worker.backend import CHAIN, PARALLEL
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import KINDS
from opmark.models import zoo
from opmark.models.capture.aten import capture
from opmark.models.capture.torch_variants import in_bfloat16

TARGET = BACKEND.targets("device")[0]


def kernel(name: str, **parameters: object) -> Kernel:
    kind = KINDS.load(name)
    return kind.kernel(kind.parameters(**parameters))


def storages(call: AtenCall, *, copies: int, rotated: bool) -> list[list[int]]:
    made = operands(call, copies=copies, rotated=rotated)
    return [[item.untyped_storage().data_ptr() for item in positional] for positional, _ in made]


LINEAR = AtenCall(
    op="mm.default",
    arguments=(TensorSpec((4, 8)), TensorSpec((8, 16))),
    outputs=(TensorSpec((4, 16)),),
    strides=(None, (1, 8)),
    parameters=(1,),
)


def test_the_target_says_version_threads_and_allocator():
    assert TARGET.name == "torch-eager-t1"
    assert TARGET.options == ("malloc-keep",)
    assert set(BACKEND.environment_variables(TARGET)) == {
        "MALLOC_MMAP_MAX_",
        "MALLOC_TRIM_THRESHOLD_",
        "MALLOC_TOP_PAD_",
    }
    assert [target.threads for target in BACKEND.targets("device", (1, 2))] == [1, 2]
    assert BACKEND.unavailable() is None
    assert BACKEND.facts()["version"]


def test_every_copy_has_its_own_weights_and_when_rotated_its_own_inputs():
    shared = storages(LINEAR, copies=3, rotated=False)
    assert len({copy[0] for copy in shared}) == 1
    assert len({copy[1] for copy in shared}) == 3
    rotated = storages(LINEAR, copies=3, rotated=True)
    assert len({pointer for copy in rotated for pointer in copy}) == 6


@pytest.mark.parametrize("strides", [(300, 100, 10, 1), (300, 1, 30, 3)])
def test_maximum_pooling_compares_rectified_images(strides):
    import torch

    result = TensorSpec((2, 3, 10, 10))
    call = AtenCall(
        op="max_pool2d_with_indices.default",
        arguments=(result, (3, 3), (1, 1), (1, 1)),
        outputs=(result, TensorSpec((2, 3, 10, 10), "int64")),
        strides=(strides,),
    )
    for positional, _ in operands(call, copies=2, rotated=True):
        image = positional[0]
        assert image.stride() == strides
        assert 0.3 < float((image == 0).float().mean()) < 0.7
        steps = (image[..., 1:] - image[..., :-1]).abs().mean()
        assert steps < 0.8 * (image[..., 4:] - image[..., :-4]).abs().mean(), "neighbours are alike"
        assert torch.isfinite(image).all()


def test_no_plane_of_a_pooled_image_repeats_another():
    result = TensorSpec((1, 200, 14, 14))
    call = AtenCall(op="max_pool2d_with_indices.default", arguments=(result, (3, 3)), outputs=(result,))
    [(positional, _)] = operands(call, copies=1, rotated=False)
    assert len({tuple(plane.flatten().tolist()) for plane in positional[0][0]}) == 200


def test_strides_and_values_are_as_asked_for():
    import torch

    [_, (positional, _)] = operands(LINEAR, copies=2, rotated=True)
    assert positional[1].stride() == (1, 8)
    assert 0.5 <= float(positional[1].min()) <= float(positional[1].max()) <= 1.5
    lookup = AtenCall(
        op="embedding.default",
        arguments=(TensorSpec((7, 4)), TensorSpec((100,), "int64")),
        outputs=(TensorSpec((100, 4)),),
        parameters=(0,),
    )
    [(tensors, _)] = operands(lookup, copies=1, rotated=False)
    assert tensors[1].dtype == torch.int64
    assert 0 <= int(tensors[1].min()) <= int(tensors[1].max()) == 6


def test_a_result_stands_in_for_a_plain_activation_only():
    spec = TensorSpec((4, 4))
    assert chain_argument(AtenCall(op="relu.default", arguments=(spec,), outputs=(spec,))) == 0
    strided = AtenCall(op="relu.default", arguments=(spec,), outputs=(spec,), strides=((1, 4),))
    assert chain_argument(strided) is None
    weight = AtenCall(op="mm.default", arguments=(spec, spec), outputs=(spec,), parameters=(0,))
    assert chain_argument(weight) == 1
    assert chain_argument(LINEAR) is None


@pytest.mark.parametrize("op", ["exp", "log"])
def test_what_leaves_the_range_of_usual_numbers_makes_no_chain(op: str):
    assert BACKEND.construction(kernel("elementwise", op=op, shapes=((4,),))) == PARALLEL


class Traced:
    """An operator that adds two tensors, and remembers what it read and how many of its results lived at once."""

    def __init__(self) -> None:
        self.read: list[float] = []
        self.most_alive = 0
        self._results: list[weakref.ref[object]] = []

    def __call__(self, x, other):
        self.read.append(float(x[0]))
        result = x + other
        self._results.append(weakref.ref(result))
        self.most_alive = max(self.most_alive, sum(one() is not None for one in self._results))
        return result


def traced(chained: int | None, *, apart: bool = False) -> Traced:
    """Two rounds of five copies of a traced operator."""
    import torch

    operator = Traced()
    calls = Calls(operator, [([torch.ones(4), torch.ones(4)], {}) for _ in range(5)], chained, apart=apart)
    calls.call()
    calls.call()
    return operator


def test_a_chain_hands_on_its_result():
    double = kernel("elementwise", op="add", shapes=((4,), (4,)))
    assert BACKEND.construction(double) == CHAIN
    BACKEND.prepare(double, TARGET, copies=3, construction=CHAIN, rotated=False).close()
    assert traced(0).read == [1, 2, 3, 4, 5] * 2
    assert traced(None).read == [1] * 10


def test_results_are_freed_as_in_a_network_unless_each_has_memory_of_its_own():
    assert traced(0).most_alive == 2
    assert traced(None).most_alive == 1
    assert traced(None, apart=True).most_alive >= 5


def test_copies_side_by_side_each_keep_their_result():
    linear = kernel("gemm", m=4, k=8, n=16)
    assert BACKEND.construction(linear) == PARALLEL
    prepared = BACKEND.prepare(linear, TARGET, copies=3, construction=PARALLEL, rotated=True)
    prepared.call()
    assert prepared.copies == 3
    assert len({result.data_ptr() for result in prepared._kept}) == 3


def test_every_kernel_of_a_network_can_be_measured():
    built = zoo.build("nasnet-like-tiny", weights=False)
    graph = capture(lambda: (built.module, built.inputs), name="network")
    for item in {node.kernel for node in graph.costly}:
        prepared = BACKEND.prepare(item, TARGET, copies=2, construction=BACKEND.construction(item), rotated=False)
        prepared.call()
        prepared.close()


@pytest.mark.parametrize("model", ["encoder-tiny", "plain-tiny"])
@pytest.mark.parametrize("bf16", [False, True])
def test_every_kernel_of_a_training_step_can_be_measured_hot_and_rotated(model, bf16):
    def built():
        network = zoo.build(model, batch=2, weights=False)
        pair = (network.module, network.inputs)
        return in_bfloat16(*pair, weights=False) if bf16 else pair

    graph = capture(built, name=model, training=True)
    for item in {node.kernel for node in graph.costly}:
        for rotated in (False, True):
            prepared = BACKEND.prepare(item, TARGET, copies=2, construction=BACKEND.construction(item), rotated=rotated)
            prepared.call()
            prepared.close()


@pytest.mark.parametrize("variant", ["training", "bf16-training"])
def test_a_training_variant_is_measured_as_whole_steps(variant):
    import torch

    prepared = BACKEND.prepare_network(f"encoder-tiny@{variant}", TARGET, dimensions={"batch": 2})
    step = prepared._run
    before = [parameter.detach().clone() for parameter in step._module.parameters()]
    prepared.call()
    changed = [not torch.equal(old, new) for old, new in zip(before, step._module.parameters(), strict=True)]
    assert any(changed)
    assert {parameter.dtype for parameter in step._module.parameters()} == {
        torch.bfloat16 if variant.startswith("bf16") else torch.float32
    }
    prepared.close()


def test_whole_networks_and_nothing_at_all_can_be_measured():
    for prepared in (
        BACKEND.prepare_network("plain-tiny", TARGET, dimensions={"batch": 2}),
        BACKEND.prepare_empty(TARGET, copies=4),
    ):
        prepared.call()
        prepared.close()


def test_starting_sets_the_threads():
    import torch

    before = torch.get_num_threads()
    try:
        BACKEND.start(TARGET)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)


def test_what_torch_does_not_have_or_refuses_is_one_sentence():
    blocked = kernel(
        "conv",
        batch=1,
        channels_in=16,
        channels_out=16,
        size=(8, 8),
        kernel=(1, 1),
        stride=(1, 1),
        pads=(0, 0, 0, 0),
        dilation=(1, 1),
        block=16,
    )
    with pytest.raises(UnavailableError, match="no such kernel"):
        BACKEND.construction(blocked)
    impossible = kernel("elementwise", op="sin", shapes=((4,),), dtype="bool")
    wrong = kernel("softmax", shape=(4,), axis=3)
    with pytest.raises(MeasurementError, match="torch refuses it"):
        BACKEND.prepare(wrong, TARGET, copies=1, construction=CHAIN, rotated=False)
    assert BACKEND.construction(impossible) == CHAIN


@pytest.mark.parametrize(
    ("raised", "said"), [(RuntimeError("no kernel\nfor this"), "no kernel"), (TypeError(), "TypeError")]
)
def test_a_refusal_is_one_sentence_even_where_torch_says_nothing(raised: Exception, said: str) -> None:
    with pytest.raises(MeasurementError, match=f"^torch refuses it: {said}$"), refusal():
        raise raised
