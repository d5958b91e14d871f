"""Turns the graph in a saved program into a `torch.fx` graph.

torch writes a graph as Python text and runs it. So no name of the file gets into the graph: nodes are numbered, and a
weight keeps its name only if that consists of identifiers.
"""

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opmark.models.programs.archive import SavedProgram, scalar_type, whole
from opmark.models.programs.operators import WRAPPERS, UnknownOperatorError, is_check, operator_of

if TYPE_CHECKING:
    import torch

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_KEYWORD = 2
_MOST_DEPTH = 50


class Builder:
    """Builds the module of one program; `saved` holds its tensors."""

    def __init__(self, saved: SavedProgram) -> None:
        import torch

        self._saved = saved
        self._root = torch.nn.Module()
        self._graph = torch.fx.Graph()
        self._operators: dict[str, Callable[..., Any]] = {}
        self._labels: dict[str, str] = {}

    def module(self, content: Mapping[str, Any], names: Sequence[str]) -> "torch.nn.Module":
        """The module of a program whose tensor inputs are called `names`."""
        import torch

        values: dict[str, Any] = {}
        for number, name in enumerate(names):
            values[name] = self._graph.placeholder(f"input_{number}")
        for spec in content["signature"]["input_specs"]:
            self._weight(spec, values)
        self._run(content["graph"], values, 0)
        outputs = self._outputs(content["signature"]["output_specs"], values)
        self._graph.output(outputs)
        return torch.fx.GraphModule(self._root, self._graph)

    def _weight(self, spec: Mapping[str, Any], values: dict[str, Any]) -> None:
        """Register a parameter, buffer or constant, and make a node that reads it."""
        import torch

        kind, value = next(iter(spec.items()))
        if kind in ("user_input", "constant_input"):
            return
        if kind not in ("parameter", "buffer", "tensor_constant"):
            raise UnknownOperatorError(f"an object: {kind}")
        name = value[f"{kind}_name"]
        tensor = self._saved.tensors[name]
        *path, last = self._label(name).split(".")
        owner = self._root
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, torch.nn.Module())
            owner = owner.get_submodule(part)
        if kind == "parameter":
            trained = tensor.is_floating_point() or tensor.is_complex()
            owner.register_parameter(last, torch.nn.Parameter(tensor.detach(), requires_grad=trained))
        else:
            owner.register_buffer(last, tensor, persistent=bool(value.get("persistent", False)))
        self._labels[name] = ".".join([*path, last])
        values[value["arg"]["name"]] = self._graph.get_attr(self._labels[name])

    def _label(self, name: str) -> str:
        """The name of a weight in the module; a number where its own name cannot be an attribute."""
        owner: Any = self._root
        if not _NAME.fullmatch(name) or any(map(keyword.iskeyword, name.split("."))):
            return f"weight_{len(self._labels)}"
        *path, last = name.split(".")
        for part in path:
            known = owner._modules.get(part) if owner is not None else None
            if hasattr(owner, part) and known is None:
                return f"weight_{len(self._labels)}"
            owner = known
        # an attribute that every module has, such as `forward`, or one that is taken
        taken = hasattr(self._root if owner is None else owner, last)
        return f"weight_{len(self._labels)}" if taken else name

    def _run(self, graph: Mapping[str, Any], values: dict[str, Any], depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise ValueError("graphs within graphs")
        for node in graph["nodes"]:
            target = node["target"]
            if is_check(target):
                continue
            if target in WRAPPERS:
                result, several = self._wrapped(node, values, depth), True
            else:
                result, several = self._call(node, values)
            self._bind(node["outputs"], result, several, values)

    def _call(self, node: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[Any, bool]:
        """A node that calls an operator, and whether it returns several values."""
        target = node["target"]
        if target not in self._operators:
            self._operators[target] = operator_of(target)
        function: Any = self._operators[target]
        schema = getattr(function, "_schema", None)
        given = {item["name"]: item for item in node["inputs"]}
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        if schema is None:
            arguments = [self._value(item["arg"], values) for item in node["inputs"]]
        else:
            gap = False
            for one in schema.arguments:
                item = given.pop(one.name, None)
                if item is None:
                    gap = True
                elif gap or one.kwarg_only or item.get("kind") == _KEYWORD:
                    gap = True
                    keywords[one.name] = self._value(item["arg"], values)
                else:
                    arguments.append(self._value(item["arg"], values))
            if given:
                raise ValueError("an argument that the operator does not have")
        made = self._graph.call_function(function, tuple(arguments), keywords)
        stack = str(node.get("metadata", {}).get("nn_module_stack", "")).rpartition(";")[2].split(",")
        if len(stack) > 1:
            made.meta["nn_module_stack"] = {"": (stack[1], "")}
        return made, schema is not None and len(schema.returns) > 1

    def _wrapped(self, node: Mapping[str, Any], values: Mapping[str, Any], depth: int) -> list[Any]:
        """The results of a graph that an operator runs once, built in place."""
        place = WRAPPERS[node["target"]]
        arguments = [item["arg"] for item in node["inputs"]]
        if node["target"].endswith("autocast") and arguments[2] != {"as_bool": False}:
            raise UnknownOperatorError("torch.autocast")
        inner = arguments[place]["as_graph"]["graph"]
        given = [self._value(argument, values) for argument in arguments[place + 1 :]]
        names = [next(iter(item.values()))["name"] for item in inner["inputs"]]
        own = dict(zip(names, given, strict=True))
        self._run(inner, own, depth + 1)
        return [self._value(item, own) for item in inner["outputs"]]

    def _bind(self, outputs: Sequence[Mapping[str, Any]], result: Any, several: bool, values: dict[str, Any]) -> None:
        """Name the results of a call."""
        import operator

        if len(outputs) == 1 and not several:
            kind, value = next(iter(outputs[0].items()))
            if kind in ("as_tensors", "as_optional_tensors"):
                for number, item in enumerate(value):
                    one = item.get("as_tensor", item)
                    if "name" in one:
                        values[one["name"]] = self._graph.call_function(operator.getitem, (result, number))
                return
        for number, output in enumerate(outputs):
            kind, value = next(iter(output.items()))
            if not isinstance(value, Mapping) or kind == "as_none":
                continue
            inner = value.get("as_tensor", value)
            name = inner.get("name") or inner.get("as_name") if isinstance(inner, Mapping) else None
            if name is None:
                continue
            if isinstance(result, list):
                values[name] = result[number]
            elif several or len(outputs) > 1:
                values[name] = self._graph.call_function(operator.getitem, (result, number))
            else:
                values[name] = result

    def _outputs(self, specs: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values that the program returns; mutations of weights and inputs are written back first."""
        import torch

        found = []
        for spec in specs:
            kind, value = next(iter(spec.items()))
            if kind in ("user_output", "loss_output"):
                argument = value["arg"] if kind == "user_output" else {"as_tensor": value["arg"]}
                found.append(self._value(argument, values))
            elif kind.endswith("_mutation"):
                made = values[value["arg"]["name"]]
                if kind == "user_input_mutation":
                    place = values[value["user_input_name"]]
                else:
                    place = self._graph.get_attr(self._labels[value[f"{kind.partition('_')[0]}_name"]])
                self._graph.call_function(torch.ops.aten.copy_.default, (place, made))
            elif kind != "token":
                raise ValueError(f"an output of the kind {kind}")
        return tuple(found)

    def _value(self, argument: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """An argument as a node or a constant."""
        kind, value = next(iter(argument.items()))
        if kind == "as_none":
            return None
        if kind in ("as_tensor", "as_optional_tensor"):
            return self._named(value, values)
        if kind in ("as_tensors", "as_optional_tensors"):
            return [self._named(item, values) for item in value]
        if kind == "as_nested_tensors":
            return [[self._named(item, values) for item in row] for row in value]
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._symbolic(value, values)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._symbolic(item, values) for item in value]
        return _constant(kind, value)

    def _named(self, item: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        if "as_none" in item:
            return None
        return values[item.get("as_tensor", item)["name"]]

    def _symbolic(self, item: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        kind, value = next(iter(item.items()))
        return values[value] if kind == "as_name" else _constant(kind, value)


def _constant(kind: str, value: Any) -> Any:
    import torch

    plain: dict[str, Callable[[Any], Any]] = {"int": whole, "float": float, "bool": _flag, "string": _text}
    name = kind.removeprefix("as_")
    if name in plain:
        return plain[name](value)
    for ending, depth in (("s", 1), ("_lists", 2)):
        if name.removesuffix(ending) in plain and name.endswith(ending):
            read = plain[name.removesuffix(ending)]
            return [read(item) for item in value] if depth == 1 else [[read(item) for item in row] for row in value]
    if name == "scalar_type":
        return scalar_type(value)
    if name == "memory_format":
        formats = (None, "contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
        return getattr(torch, str(formats[whole(value)]))
    if name == "layout" and value == 7:
        return torch.strided
    # A program that was saved for a GPU is read on any machine; its calls are the same.
    if name == "device":
        return torch.device("cpu")
    if name == "complex":
        return complex(float(value["real"]), float(value["imag"]))
    raise UnknownOperatorError(f"an argument of the kind {name}")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value
