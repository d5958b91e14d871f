"""The trace of what eager torch calls, checked against what torch's own profiler sees it run."""

import contextlib
import io
import sys
from collections import Counter

import pytest

from opmark.core.errors import ContentError
from opmark.kinds import GENERIC, KINDS
from opmark.models import zoo
from opmark.models.capture.aten import capture
from opmark.models.capture.quiet import quiet
from opmark.models.coverage import coverage
from opmark.models.programs.program import program_of

OWN = [
    "inception-tiny",
    "plain-tiny",
    "nasnet-like-tiny",
    "rand-wire-tiny",
    "two-tower-tiny",
    "wide-and-deep-tiny",
    "mixture-of-experts-tiny",
    "encoder-tiny",
    "decoder-tiny",
]


def graph_of(model: str, *, training: bool = False):
    built = zoo.build(model, weights=False)
    return capture(lambda: (built.module, built.inputs), name=model, training=training)


def traced(function, *shapes: tuple[int, ...]):
    """The graph of a function of random tensors."""
    import torch

    class Module(torch.nn.Module):
        def forward(self, *tensors):
            return function(*tensors)

    return capture(lambda: (Module().eval(), tuple(torch.randn(shape) for shape in shapes)), name="function")


def operators(graph, *, phase: str = "forward") -> Counter[str]:
    return Counter(node.origins[0].split(".")[1] for node in graph.costly if node.phase == phase)


@pytest.mark.parametrize("model", OWN)
def test_own_networks_have_a_kind_for_everything(model):
    graph = graph_of(model)
    found = coverage(graph)
    assert found.hidden == ()
    assert found.bytes_moved_share <= 0.02
    assert graph.language == "aten"
    assert graph.weight_bytes > 0
    assert all(node.scope for node in graph.costly if node.kernel.kind in {"conv", "gemm"})


@pytest.mark.parametrize("model", ["inception-tiny", "encoder-tiny", "mixture-of-experts-tiny"])
def test_the_trace_is_what_the_profiler_sees(model):
    import torch

    built = zoo.build(model)
    with torch.inference_mode(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        built.module(*built.inputs)
    ran = Counter(event.name.removeprefix("aten::") for event in profile.events())
    graph = graph_of(model)
    for operator, count in operators(graph).items():
        if operator != "mean":  # adaptive pooling reports its mean and the sum inside it
            assert ran[operator] == count, operator


def test_a_linear_layer_reads_its_weight_transposed_and_views_are_free():
    graph = graph_of("encoder-tiny")
    [first] = [node for node in graph.nodes if node.kernel.kind == "gemm" and node.scope.endswith("inward")]
    assert first.kernel.params["trans_b"] is True
    assert first.kernel.params["weight"] is True
    free = [node for node in graph.nodes if node.free]
    assert {node.origins[0].split(".")[1] for node in free} >= {"view", "t"}
    assert not any(node.work.moved_bytes for node in free)


def test_attention_is_the_processors_own_kernel():
    graph = graph_of("decoder-tiny")
    [attention] = [node for node in graph.nodes if node.kernel.kind == "attention"]
    assert attention.origins == ("aten._scaled_dot_product_flash_attention_for_cpu.default",)
    assert attention.kernel.params["causal"] is True
    assert attention.kernel.params["flat"] is True


def test_a_composite_nobody_knows_is_taken_apart_and_its_copies_show():
    import torch

    graph = traced(lambda a, b: torch.einsum("bhij,bhjk->bhik", a, b), (2, 3, 4, 5), (2, 3, 5, 6))
    assert operators(graph) == {"bmm": 1}
    swapped = traced(lambda a: a.transpose(1, 2).reshape(2, 12), (2, 3, 4))
    assert [node.kernel.params["op"] for node in swapped.costly] == ["transpose"]


def test_dropout_in_evaluation_is_nothing():
    import torch

    graph = traced(lambda a: torch.nn.functional.dropout(a, 0.5, training=False) + 1, (4, 4))
    assert operators(graph) == {"add": 1}


def test_whoever_reads_after_a_write_in_place_reads_what_was_written():
    def write(a):
        part = a[:, :2]
        part.mul_(2.0)
        return a + 1

    graph = traced(write, (4, 4))
    slice_, multiply, add = graph.nodes
    assert slice_.free
    assert add.inputs == multiply.outputs


def test_what_only_the_first_pass_computes_is_no_part_of_the_graph() -> None:
    import torch

    class Biased(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.biases = torch.nn.Parameter(torch.zeros(7))
            self.places = torch.arange(12).view(3, 4) % 7
            self.looked_up: torch.Tensor | None = None

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            if self.looked_up is None:
                self.looked_up = self.biases[self.places]
            return tokens + self.looked_up

    graph = capture(lambda: (Biased().eval(), (torch.randn(2, 3, 4),)), name="biased")
    assert operators(graph) == {"add": 1}
    assert [spec.shape for spec in graph.weights.values()] == [(3, 4)]


def test_values_that_decide_what_runs_are_refused():
    with pytest.raises(ContentError, match="depends on the values"):
        traced(lambda a: a[a > 0].sum(), (4, 4))


def test_training_has_three_phases_and_the_real_backward_kernels():
    graph = graph_of("plain-tiny", training=True)
    assert [node.phase for node in graph.nodes] == sorted(
        (node.phase for node in graph.nodes), key=("forward", "backward", "update").index
    )
    backward = operators(graph, phase="backward")
    assert backward["convolution_backward"] == 4
    assert backward["mm"] == 2
    parameters = len(list(zoo.build("plain-tiny", weights=False).module.parameters()))
    update = operators(graph, phase="update")
    assert (update["lerp_"], update["addcmul_"], update["addcdiv_"]) == (parameters, parameters, parameters)
    assert {node.kernel.kind for node in graph.costly} == {
        "conv", "conv-backward", "pool", "pool-backward", "elementwise", "activation-backward", "gemm", "reduce",
        "softmax", "softmax-backward", "loss", "movement",
    }  # fmt: skip


def test_the_same_network_has_the_same_identity_and_another_size_another():
    assert graph_of("plain-tiny").id == graph_of("plain-tiny").id
    built = zoo.build("plain-tiny", size=48, weights=False)
    assert capture(lambda: (built.module, built.inputs), name="plain-tiny").id != graph_of("plain-tiny").id


def test_capture_prints_nothing():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        graph_of("encoder-tiny")
    assert out.getvalue() == ""


def exported(tmp_path, **options):
    import torch

    built = zoo.build("encoder-tiny")
    path = tmp_path / "encoder.pt2"
    torch.export.save(torch.export.export(built.module, built.inputs, **options), path)
    return path


@pytest.mark.filterwarnings("ignore")
def test_an_exported_program_has_the_kernels_of_its_module(tmp_path):
    path = exported(tmp_path)
    graph = capture(lambda: program_of(path), name="encoder")
    assert graph.work == graph_of("encoder-tiny").work
    assert Counter(node.kernel for node in graph.costly) == Counter(
        node.kernel for node in graph_of("encoder-tiny").costly
    )
    assert all(node.kernel.kind != GENERIC for node in graph.costly)
    assert any("attention" in node.scope for node in graph.nodes)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 truncated", b"not a program"])
def test_a_file_that_is_no_program_is_refused(tmp_path, content):
    path = tmp_path / "broken.pt2"
    path.write_bytes(content)
    with pytest.raises(ContentError, match=r"torch\.export") as caught:
        program_of(path)
    assert caught.value.where == str(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ContentError, match="no such file"):
        program_of(tmp_path / "absent.pt2")


def test_quiet_holds_back_every_channel_and_gives_them_back(capfd):
    import logging
    import warnings

    logger = logging.getLogger("torch.export")
    before = logger.level
    with quiet():
        sys.stdout.write("to stdout")
        warnings.warn("a warning", stacklevel=1)
        logger.warning("a log line")
    assert capfd.readouterr().out == ""
    assert logger.level == before
    sys.stdout.write("heard")
    assert capfd.readouterr().out == "heard"


def test_an_lstm_is_one_recurrent_kernel_per_layer() -> None:
    import torch

    lstm = torch.nn.LSTM(24, 40, 2, batch_first=True)
    graph = capture(lambda: (lstm.eval(), (torch.zeros(3, 7, 24),)), name="lstm")
    found = [KINDS.load("recurrent").parse(node.kernel) for node in graph.costly if node.kernel.kind == "recurrent"]
    assert [(one.cell, one.length, one.batch, one.inputs, one.hidden) for one in found] == [
        ("lstm", 7, 3, 24, 40),
        ("lstm", 7, 3, 40, 40),
    ]
    assert coverage(graph).hidden == ()
    flops = sum(node.work.flops for node in graph.costly if node.kernel.kind == "recurrent")
    products = 3 * 7 * 2 * 4 * 40 * ((24 + 40) + (40 + 40))
    assert products < flops < 1.5 * products


def test_torchs_own_transformer_layers_fall_into_known_kernels() -> None:
    import torch

    layer = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    graph = capture(lambda: (layer.eval(), (torch.zeros(2, 8, 32),)), name="layer")
    assert coverage(graph).hidden == ()
    products = [node.kernel for node in graph.costly if node.kernel.kind == "gemm"]
    sizes = [(one.m, one.n, one.k) for one in map(KINDS.load("gemm").parse, products)]
    # The fused call makes one product for queries, keys and values of all tokens.
    assert sizes == [(16, 96, 32), (16, 32, 32), (16, 2048, 32), (16, 32, 2048)]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_parts_of_an_encoder_layer_compute_what_the_fused_call_computes(
    norm_first: bool, activation: str, masked: bool
) -> None:
    import torch

    from opmark.models.capture._fused_attention import FUSED, in_parts

    fused = []

    class Comparison(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            if func in FUSED:
                fused.append(func)
                parts = in_parts(func, args, kwargs or {})
                torch.testing.assert_close(parts, result, rtol=1e-4, atol=1e-5)
            return result

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        32, 4, 48, batch_first=True, norm_first=norm_first, activation=activation
    ).eval()
    mask = torch.ones(8, 8, dtype=torch.bool).triu(1) if masked else None
    with torch.inference_mode(), Comparison():
        layer(torch.randn(2, 8, 32), src_mask=mask)
    assert fused == [torch.ops.aten._transformer_encoder_layer_fwd.default]


@pytest.mark.parametrize("need_weights", [False, True])
def test_the_parts_of_self_attention_compute_what_the_fused_call_computes(need_weights: bool) -> None:
    import torch

    from opmark.models.capture._fused_attention import in_parts

    call = torch.ops.aten._native_multi_head_attention.default
    x, weights = torch.randn(2, 8, 32), [torch.randn(*shape) for shape in ((96, 32), (96,), (32, 32), (32,))]
    arguments = (x, x, x, 32, 4, *weights, None, need_weights)
    expected, parts = call(*arguments), in_parts(call, arguments, {})
    torch.testing.assert_close(parts[0], expected[0], rtol=1e-4, atol=1e-4)
    if need_weights:
        torch.testing.assert_close(parts[1], expected[1], rtol=1e-4, atol=1e-4)


def test_a_linear_layer_of_transposed_tokens_reads_its_weight_once() -> None:
    """torch multiplies every batch by one expanded weight there; a weight of each batch would take twice as long."""
    import torch

    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(32, 24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x.transpose(0, 1))

    graph = capture(lambda: (Linear().eval(), (torch.zeros(3, 8, 32),)), name="linear")
    (product,) = (node for node in graph.costly if node.kernel.kind == "matmul")
    kind = KINDS.load("matmul")
    p = kind.parse(product.kernel)
    assert (p.batch_a, p.batch_b, p.m, p.k, p.n) == ((8,), (1,), 3, 32, 24)
    assert p.trans_batch_a
    assert p.trans_b
    assert p.weight
    assert product.work.weight_bytes == 4 * 32 * 24
    call = kind.to_aten(p)
    assert call is not None
    assert call.strides == ((32, 256, 1), (0, 1, 32))
    assert kind.from_aten(call) == p


@pytest.mark.parametrize("batch", [1, 2])
def test_a_single_image_made_of_tokens_is_resized_to_channels_first(batch: int) -> None:
    import torch

    def upsampled(tokens: torch.Tensor) -> torch.Tensor:
        images = tokens.transpose(1, 2).reshape(-1, 8, 4, 4)
        return torch.nn.functional.interpolate(images, size=(9, 9), mode="bilinear")

    graph = traced(upsampled, (batch, 16, 8))
    (resize,) = graph.costly
    assert resize.kernel.params["mode"] == ("linear-nhwc-to-nchw" if batch == 1 else "linear-nhwc")
    made = upsampled(torch.zeros(batch, 16, 8))
    assert made.is_contiguous() is (batch == 1)


@pytest.mark.parametrize(("batch", "last"), [(1, False), (2, True)])
def test_images_made_of_tokens_have_the_layout_that_eager_torch_gives_them(batch: int, last: bool) -> None:
    """A batch of one leaves a stride that is not channels last: the convolution copies its input first."""
    import torch

    class Depthwise(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.conv(tokens.transpose(1, 2).view(-1, 8, 4, 4))

    module, tokens = Depthwise().eval(), torch.zeros(batch, 16, 8)
    graph = capture(lambda: (module, (tokens,)), name="depthwise")
    with torch.inference_mode():
        made = module(tokens)
    assert made.is_contiguous(memory_format=torch.channels_last) is last
    (convolution,) = (node for node in graph.nodes if node.kernel.kind == "conv")
    assert convolution.kernel.params["channels_last"] is last
    copies = [node for node in graph.costly if node.kernel.kind == "movement"]
    assert len(copies) == (0 if last else 1)
    assert all(node.outputs[0] in convolution.inputs for node in copies)
