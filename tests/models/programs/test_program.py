"""Saved programs load without running any code in the file, and honest ones compute what they did."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.models.programs.attacks import MODEL, honest, in_json, old_format, pickled, rewritten, saved

from opmark.core.errors import ContentError, OpMarkError, UsageError
from opmark.models.capture.aten import capture
from opmark.models.programs.program import program_of
from opmark.models.resolve import graph_of

pytestmark = pytest.mark.filterwarnings("ignore")
Attack = Callable[[Path, Path], Path]


def test_a_program_computes_what_torch_computes(tmp_path: Path) -> None:
    path = honest(tmp_path / "small.pt2")
    module, inputs = program_of(path)
    expected = torch.export.load(path).module()(*inputs)
    assert torch.equal(module(*inputs)[0], expected)
    assert {name for name, _ in module.named_parameters()} == {"inner.weight", "inner.bias"}
    assert {name for name, _ in module.named_buffers()} == {"shift", "constant"}


def test_a_file_of_an_older_torch_still_loads(tmp_path: Path) -> None:
    path = old_format(honest(tmp_path / "old.pt2"))
    module, inputs = program_of(path)
    assert torch.equal(module(*inputs)[0], torch.export.load(path).module()(*inputs))


def _sample_inputs(path: Path, marker: Path) -> Path:
    return rewritten(path, {"data/sample_inputs/model.pt": saved(marker)})


def _legacy(folder: str) -> Attack:
    return lambda path, marker: rewritten(path, {f"data/{folder}/model.pt": saved(marker)})


def _by_pickle(folder: str, prefix: str, write: Callable[[Path], bytes]) -> Attack:
    def attack(path: Path, marker: Path) -> Path:
        def change(config: Any) -> None:
            for payload in config["config"].values():
                payload.update(use_pickle=True, path_name=f"{prefix}_9")

        config = f"data/{folder}/model_{folder}_config.json"
        return rewritten(path, {config: in_json(change), f"data/{folder}/{prefix}_9": write(marker)})

    return attack


def _old(name: str) -> Attack:
    return lambda path, marker: old_format(path, {name: saved(marker)})


def _in_model(change: Callable[[Any, str], None]) -> Attack:
    def attack(path: Path, marker: Path) -> Path:
        return rewritten(
            path, {MODEL: in_json(lambda model: change(model, f"__import__('os').mkdir({str(marker)!r})"))}
        )

    return attack


def _in_graph(change: Callable[[Any, str], None]) -> Attack:
    return _in_model(lambda model, code: change(model["graph_module"], code))


def _size(graph: Any, code: str) -> None:
    graph["graph"]["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": code, "hint": None}}


def _symbol(graph: Any, code: str) -> None:
    graph["graph"]["sym_int_values"]["s"] = {"as_expr": {"expr_str": code, "hint": None}}


def _target(target: str, *arguments: Any) -> Attack:
    def change(graph: Any, code: str) -> None:
        node = graph["graph"]["nodes"][0]
        marker = code.partition("mkdir('")[2].rstrip("')")
        node["target"] = target
        given = [argument if argument is not None else marker for argument in arguments]
        kinds = {str: "as_string", int: "as_int", bool: "as_bool"}
        node["inputs"] = [{"name": "", "arg": {kinds[type(one)]: one}, "kind": 1} for one in given]

    return _in_graph(change)


def _node_name(graph: Any, code: str) -> None:
    text = json.dumps(graph).replace('"linear"', json.dumps(f"linear = {code}\n    linear"))
    graph.clear()
    graph.update(json.loads(text))


def _weight_name(path: Path, marker: Path) -> Path:
    name = f'inner.a", {"__import__"}("os").mkdir({str(marker)!r}), "b'

    def renamed(content: bytes) -> bytes:
        return content.replace(b'"inner.weight"', json.dumps(name).encode())

    return rewritten(path, {MODEL: renamed, "data/weights/model_weights_config.json": renamed})


def _guards(model: Any, code: str) -> None:
    model["guards_code"] = [code, f"{code} or True"]


def _arguments(graph: Any, code: str) -> None:
    graph["module_call_graph"][0]["signature"]["forward_arg_names"] = [f"x={code}"]


def _default_dictionary(graph: Any, _code: str) -> None:
    factory = {"default_factory_module": "antigravity", "default_factory_name": "x", "dict_context": []}
    spec = [1, {"type": "collections.defaultdict", "context": json.dumps(factory), "children_spec": []}]
    graph["module_call_graph"][0]["signature"]["in_spec"] = json.dumps(spec)


def _function(graph: Any, code: str) -> None:
    graph["graph"]["nodes"][0]["metadata"].update(torch_fn=code, source_fn_stack=code, custom=code, stack_trace=code)


ATTACKS: dict[str, Attack] = {
    "sample inputs": _sample_inputs,
    "legacy weights": _legacy("weights"),
    "legacy constants": _legacy("constants"),
    "pickled weights": _by_pickle("weights", "weight", saved),
    "pickled constants": _by_pickle("constants", "tensor", saved),
    "custom objects": _by_pickle("constants", "custom_obj", pickled),
    "opaque objects": _by_pickle("constants", "opaque_obj", pickled),
    "old weights": _old("serialized_state_dict.pt"),
    "old constants": _old("serialized_constants.pt"),
    "old example inputs": _old("serialized_example_inputs.pt"),
    "expression of an input's size": _in_graph(_size),
    "expression of a symbol": _in_graph(_symbol),
    "a function of os": _target("torch.os.mkdir", None),
    "a function of os by another path": _target("torch.serialization.os.mkdir", None),
    "torch.load": _target("torch.load", None),
    "a repository": _target("torch.hub.load", None, "x"),
    "a shared library": _target("torch.ops.load_library", None),
    "writing by TorchScript": _target("torch.ops.aten.save.default", 1, None),
    "mapping a file": _target("torch.ops.aten.from_file.default", None, True, 64),
    "an attribute of an operator": _target("torch.ops.aten.add.__class__", None),
    "a method by arithmetic": _target("_operator.methodcaller", None),
    "a name of a node": _in_graph(_node_name),
    "a name of a weight": _weight_name,
    "guards": _in_model(_guards),
    "names of arguments": _in_graph(_arguments),
    "a default dictionary": _in_graph(_default_dictionary),
    "metadata": _in_graph(_function),
}
# These members are not read, so that the rest of the program loads.
HARMLESS = {
    "sample inputs", "old example inputs", "expression of a symbol", "guards", "names of arguments",
    "a default dictionary", "metadata", "a name of a node", "a name of a weight",
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_runs_and_no_traceback_follows(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "it-ran"
    path = ATTACKS[name](honest(tmp_path / "hostile.pt2"), marker)
    if name in HARMLESS:
        module, inputs = program_of(path)
        module(*inputs)
        capture(lambda: (module, inputs), name="hostile")
    else:
        with pytest.raises(ContentError) as caught:
            program_of(path)
        assert caught.value.where == str(path)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["sample inputs", "pickled weights", "opaque objects", "old weights", "a symbol's"])
def test_the_same_files_do_run_code_in_torch(tmp_path: Path, name: str) -> None:
    """The attacks are live: a test that they fail would otherwise prove nothing."""
    marker = tmp_path / "it-ran"
    attack = ATTACKS.get(name, _in_graph(_symbol_of_a_size))
    path = attack(honest(tmp_path / "hostile.pt2"), marker)
    with contextlib.suppress(Exception):  # what torch says afterwards does not matter
        torch.export.load(path)
    assert marker.exists()


def _symbol_of_a_size(graph: Any, code: str) -> None:
    _size(graph, code)


def test_open_sizes_are_given_by_place_or_by_their_own_name(tmp_path: Path) -> None:
    path = honest(tmp_path / "open.pt2", dynamic=True)
    with pytest.raises(ContentError, match="'x' leaves dimension 0 open") as caught:
        program_of(path)
    assert caught.value.hint == "give it: --dimension x.0=2"
    _, inputs = program_of(path, {"x.0": 7})
    assert inputs[0].shape == (7, 4)
    for given, sentence in (
        ({"x.0": 1}, "exported for 2 to 64"),
        ({"x.0": 65}, "exported for 2 to 64"),
        ({"y.0": 4}, "no open dimension 'y.0'"),
        ({"x.1": 4}, "no open dimension 'x.1'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            program_of(path, given)
    small = capture(lambda: program_of(path, {"x.0": 2}), name="open")
    large = capture(lambda: program_of(path, {"x.0": 64}), name="open")
    assert large.work.flops == 32 * small.work.flops
    with pytest.raises(OpMarkError, match="are fixed, x cannot be set"):
        program_of(honest(tmp_path / "fixed.pt2"), {"x": 3})


def _no_arguments(graph: Any, _code: str) -> None:
    graph["graph"]["nodes"][0]["inputs"] = []


def _nothing_named(graph: Any, _code: str) -> None:
    graph["graph"]["nodes"][0]["outputs"][0] = {}


def _endless_power(graph: Any, _code: str) -> None:
    numbers = [{"name": name, "arg": {"as_int": number}, "kind": 1} for name, number in (("a", 3), ("b", 10**9))]
    graph["graph"]["nodes"][0].update(target="_operator.pow", inputs=numbers)


def test_a_program_that_cannot_be_exported_is_named(tmp_path: Path) -> None:
    path = _in_graph(_endless_power)(honest(tmp_path / "damaged.pt2"), tmp_path / "marker")
    with pytest.raises(OpMarkError, match="torch cannot export this network to ONNX") as refused:
        graph_of(str(path), "onnxruntime-cpu-t1", cache=tmp_path / "cache")
    assert refused.value.where == str(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_no_arguments, "its operators cannot be run"),
        (_nothing_named, "not a program saved"),
        (_endless_power, "its operators cannot be run: pow gives more than 64 bits"),
    ],
)
def test_a_program_that_cannot_run_is_refused_in_one_sentence(
    tmp_path: Path, change: Callable[[Any, str], None], sentence: str
) -> None:
    path = _in_graph(change)(honest(tmp_path / "damaged.pt2"), tmp_path / "marker")
    with pytest.raises(ContentError, match=sentence) as refused:
        graph_of(str(path), "torch-eager-t1", cache=tmp_path / "cache")
    assert refused.value.where == str(path)
    assert "\n" not in refused.value.message
