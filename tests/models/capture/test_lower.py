"""A module in bfloat16, with and without its values."""

import torch

from opmark.models.capture.lower import in_bfloat16


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
