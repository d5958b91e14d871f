"""Training traces against torch's own FLOP counter and what autograd keeps, on whole networks; and a large one."""

import gc
from collections import Counter

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from opmark.core.kernels.graph import Graph
from opmark.models import zoo
from opmark.models.capture.aten import capture
from opmark.models.capture.torch_variants import TrainingStep, loss_of

NETWORKS = ("inception-tiny", "bert-tiny", "encoder-tiny")
# What torch counts. Fused attention on the processor it does not, nor that the bias of addmm is added.
COUNTED = ("convolution", "convolution_backward", "addmm", "mm", "bmm")


def built(model: str):
    found = zoo.build(model, batch=2)
    return found.module, found.inputs


@pytest.fixture(scope="module", params=NETWORKS)
def traced(request: pytest.FixtureRequest) -> tuple[str, Graph]:
    return request.param, capture(lambda: built(request.param), name=request.param, training=True)


def test_flops_are_those_of_torchs_own_counter(traced: tuple[str, Graph]) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model, graph = traced
    step = TrainingStep(*built(model))
    with FlopCounterMode(display=False) as counter:
        step()
    theirs = {str(op).removeprefix("aten."): flops for op, flops in counter.get_flop_counts()["Global"].items()}
    ours: Counter[str] = Counter()
    for node in graph.costly:
        name = node.origins[0].split(".")[1]
        if name in COUNTED:
            added = sum(graph.tensors[tensor].elements for tensor in node.outputs) if name == "addmm" else 0
            ours[name] += node.work.flops - added
    assert theirs
    assert ours == theirs


def test_what_waits_for_the_backward_pass_is_what_autograd_keeps(traced: tuple[str, Graph]) -> None:
    """Byte for byte, but for the classes (8 bytes a row) and, of the loss, the sum of their weights (4 bytes)."""
    import torch

    model, graph = traced
    module, inputs = built(model)
    step = TrainingStep(module, inputs)
    step()
    known = {item.untyped_storage().data_ptr() for item in (*module.parameters(), *module.buffers(), *inputs)}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = module(*inputs)
        loss_of(output, torch.arange(output[..., 0].numel()) % output.shape[-1])
    saved = Counter(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in known)
    ours = Counter(graph.tensors[name].size_bytes for name in handed_back(graph))
    assert ours - saved <= Counter({4: 1}), "nothing waits that autograd lets go"
    missing = sum((saved - ours).elements())
    assert missing <= 0.04 * sum(saved.elements()), "autograd keeps a few tensors that no gradient reads"
    if model != "bert-tiny":
        assert set(saved - ours) <= {8 * 2 * size for size in (1, 8)}, "only the classes"


def test_every_parameter_that_has_a_gradient_is_updated_once(traced: tuple[str, Graph]) -> None:
    model, graph = traced
    module, inputs = built(model)
    step = TrainingStep(module, inputs)
    step()
    state = step._optimizer.state
    wanted = Counter(item.untyped_storage().nbytes() for item in module.parameters() if state[item]["step"] > 0)
    maker = {name: node for node in graph.nodes for name in node.outputs}
    gradients = Counter(
        graph.tensors[name].size_bytes
        for node in graph.costly
        if node.phase == "update" and node.name.startswith("lerp_")
        for name in node.inputs
        if name in maker
    )
    assert gradients == wanted


def handed_back(graph: Graph) -> set[str]:
    """What the forward pass makes and the backward pass reads, views counted as what they show."""
    maker = {tensor: node for node in graph.nodes for tensor in node.outputs}
    forward = {tensor for node in graph.nodes if node.phase == "forward" for tensor in node.outputs}

    def shown(tensor: str) -> str:
        while tensor in maker and maker[tensor].free and maker[tensor].inputs:
            tensor = maker[tensor].inputs[0]
        return tensor

    read = {shown(tensor) for node in graph.nodes if node.phase == "backward" for tensor in node.inputs}
    return read & forward


def test_gradients_of_a_depthwise_convolution_are_not_those_of_a_dense_one() -> None:
    """torch's counter takes them for dense; each gradient costs what the forward pass does."""
    graph = capture(lambda: built("mobilenet-small"), name="mobilenet-small", training=True)
    flops: Counter[str] = Counter()
    first = 0
    for node in graph.costly:
        name = node.origins[0].split(".")[1]
        flops[name] += node.work.flops
        first = first or (node.work.flops if name == "convolution" else 0)
    assert flops["convolution_backward"] == 2 * flops["convolution"] - first, "the image needs no gradient"


def test_a_network_of_seven_billion_weights_is_traced_without_computing_any() -> None:
    """Llama-7B has 225 products and 32 attentions; its 27 GB of weights are never touched."""
    import torch

    from opmark.models.zoo._configured.building import build
    from opmark.models.zoo._shared.weights import without_initialisation

    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000, "use_cache": False}
    blocks = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32}

    def llama():
        with without_initialisation():
            module = build("Llama", {**sizes, **blocks}, head="ForCausalLM")
        return module.eval().requires_grad_(False), (torch.randint(32000, (1, 16)),)

    graph = capture(llama, name="llama-7b")
    gc.collect()  # modules refer to themselves; while 27 GB stay reserved, Linux refuses to fork this process
    calls = Counter(node.origins[0].split(".")[1] for node in graph.nodes)
    assert calls["mm"] == 7 * 32 + 1
    assert calls["_scaled_dot_product_flash_attention_for_cpu"] == 32
    assert graph.weight_bytes == pytest.approx(4 * 6.738e9, rel=0.001)
    # 2,209 as published for another version of transformers; each block may have a few views more or less
    assert 2209 - 5 * 32 <= len(graph.nodes) <= 2209 + 10 * 32
