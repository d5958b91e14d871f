"""Rebuilt programs make the calls of their modules, and no name of a file becomes code."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from opmark.models import zoo
from opmark.models.capture.aten import capture
from opmark.models.programs.program import program_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", ["resnet-small", "gpt2-tiny", "llama-block", "mobilenet-small", "two-tower"])
def test_the_networks_of_the_zoo_keep_their_kernels(tmp_path: Path, name: str) -> None:
    built = zoo.build(name)
    path = tmp_path / "network.pt2"
    torch.export.save(torch.export.export(built.module.eval(), built.inputs, strict=False), path)
    found = capture(lambda: program_of(path), name=name)
    expected = capture(lambda: (built.module.eval(), built.inputs), name=name)
    assert Counter(node.kernel for node in found.costly) == Counter(node.kernel for node in expected.costly)


def test_a_buffer_that_changes_is_written_back(tmp_path: Path) -> None:
    path = tmp_path / "norm.pt2"
    module, inputs = torch.nn.BatchNorm2d(3), (torch.randn(2, 3, 4, 4),)
    program = torch.export.export(module, inputs).run_decompositions()
    torch.export.save(program, path)
    loaded, _ = program_of(path)
    loaded(*inputs)
    program.module()(*inputs)
    assert int(dict(loaded.named_buffers())["num_batches_tracked"]) == 1


@pytest.mark.parametrize("name", ["forward", "training", "class", "_modules"])
def test_a_weight_may_have_any_name(tmp_path: Path, name: str) -> None:
    from tests.models.programs.attacks import MODEL, honest, rewritten

    def renamed(content: bytes) -> bytes:
        return content.replace(b'"shift"', f'"{name}"'.encode())

    path = honest(tmp_path / "small.pt2")
    rewritten(path, {MODEL: renamed, "data/weights/model_weights_config.json": renamed})
    module, inputs = program_of(path)
    assert module(*inputs)[0].shape == (2, 3)
