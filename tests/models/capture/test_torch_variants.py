"""The variants of torch networks: bfloat16 with and without values; a training step, its phases and its loss."""

import pytest
import torch

from opmark.core.errors import ContentError
from opmark.models import zoo
from opmark.models.capture.aten import capture
from opmark.models.capture.torch_variants import TrainingStep, in_bfloat16, loss_of, targets_of


def test_steps_make_the_loss_smaller() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        step = TrainingStep(module, (torch.randn(6, 8),))
    losses = [float(step().detach()) for _ in range(20)]
    assert losses[-1] < losses[0]
    assert all(parameter.grad is None for parameter in module.parameters())


def test_phases_follow_each_other() -> None:
    heard: list[str] = []
    step = TrainingStep(torch.nn.Linear(4, 3), (torch.ones(2, 4),), enter=heard.append)
    step()
    assert heard == ["forward", "backward", "update"]


def test_sequences_have_a_class_per_position_and_images_none() -> None:
    targets = targets_of(torch.zeros(2, 5, 7))
    assert targets is not None
    assert (targets.shape, int(targets.max())) == ((10,), 6)
    assert loss_of(torch.zeros(2, 5, 7), targets).item() == pytest.approx(1.9459, abs=1e-3)
    assert targets_of(torch.zeros(2, 3, 4, 4)) is None
    assert targets_of(torch.zeros(2, 1)) is None
    assert loss_of(torch.full((2, 1), 3.0), None).item() == 3.0


def test_what_has_no_weights_cannot_be_trained() -> None:
    with pytest.raises(ContentError, match="cannot be trained"):
        capture(lambda: (torch.nn.ReLU(), (torch.ones(2, 2),)), name="relu", training=True)


def test_the_trace_is_what_a_real_step_calls() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    graph = capture(lambda: _built("encoder-tiny"), name="encoder-tiny", training=True)
    module, inputs = _built("encoder-tiny")
    step = TrainingStep(module, inputs)
    step()
    called: list[str] = []

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            called.append(str(func).removeprefix("aten."))
            return func(*args, **(kwargs or {}))

    with Listening():
        step()
    recorded = [node.origins[0].removeprefix("aten.") for node in graph.costly]
    assert "copy_.default" not in recorded
    passing = set(called) - set(recorded)
    assert [name for name in called if name not in passing] == recorded
    assert {name.partition(".")[0] for name in passing} <= {
        "t", "view", "_unsafe_view", "transpose", "expand", "detach", "slice", "select", "unsqueeze", "squeeze",
        "permute", "split", "split_with_sizes", "alias", "_local_scalar_dense", "as_strided", "ones_like",
        "empty_like", "profiler", "unbind", "chunk", "empty", "_reshape_alias", "narrow",
    }  # fmt: skip


def _built(name: str):
    built = zoo.build(name, batch=2)
    return built.module, built.inputs


def module() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))


def test_floats_change_and_counts_stay() -> None:
    inputs = (torch.ones(2, 3), torch.zeros(2, dtype=torch.int64))
    made, lowered = in_bfloat16(module(), inputs, weights=True)
    types = {name: tensor.dtype for name, tensor in made.state_dict().items()}
    assert types.pop("1.num_batches_tracked") == torch.int64
    assert set(types.values()) == {torch.bfloat16}
    assert [item.dtype for item in lowered] == [torch.bfloat16, torch.int64]


def test_values_are_kept_only_where_they_are_asked_for() -> None:
    before = module()
    wanted = before[0].weight.detach().to(torch.bfloat16)
    made, _ = in_bfloat16(before, (), weights=True)
    assert torch.equal(made[0].weight, wanted)
    made, _ = in_bfloat16(module(), (), weights=False)
    assert made[0].weight.dtype == torch.bfloat16
