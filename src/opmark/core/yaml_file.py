"""Read YAML, which people write: the plain types of JSON, no key twice, no bomb of aliases, numbers in range."""

import math
from functools import cache
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.reading import DEPTH_AT_MOST, read_text

# Nobody writes more by hand, and reading it takes a second per MiB.
_AT_MOST_BYTES = 2**22
# With all aliases written out.
_NODES_AT_MOST = 2**20


def read_yaml(path: Path) -> Any:
    """Parse a YAML file. Raises `ContentError` with the file and the line."""
    import yaml

    text = read_text(path, at_most=_AT_MOST_BYTES)
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 (a safe loader with fewer types)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ContentError(f"not YAML: {error.problem}", where=f"{path}{line}") from error
    except yaml.reader.ReaderError as error:
        raise ContentError(f"not YAML: {error.reason}", where=str(path)) from error
    except yaml.YAMLError as error:
        raise ContentError("not YAML", where=str(path)) from error
    except (ValueError, OverflowError, RecursionError, TypeError) as error:
        raise ContentError(f"not YAML: {error}", where=str(path)) from error


@cache
def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader, which refuses more: its errors have the place."""

        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self.level = 0
            # The nodes and the levels below each node, where aliases count as often as they are used.
            self.extent: dict[Any, tuple[int, int]] = {}

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            mark = event.start_mark
            self.level += 1
            try:
                if self.level > DEPTH_AT_MOST:
                    raise _too_large(mark)
                node = super().compose_node(parent, index)
            finally:
                self.level -= 1
            if isinstance(event, yaml.AliasEvent) and node not in self.extent:
                raise yaml.composer.ComposerError(None, None, "an alias refers to what it is part of", mark)
            if node not in self.extent:
                parts = node.value if isinstance(node, yaml.CollectionNode) else ()
                below = [part for item in parts for part in (item if isinstance(item, tuple) else (item,))]
                nodes = 1 + sum(self.extent[part][0] for part in below)
                levels = 1 + max((self.extent[part][1] for part in below), default=0)
                if nodes > _NODES_AT_MOST or levels > DEPTH_AT_MOST:
                    raise _too_large(mark)
                self.extent[node] = nodes, levels
            return node

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep=deep)
            except (ValueError, OverflowError, KeyError) as error:
                raise _refused(node, str(error)) from error

    prefix = "tag:yaml.org,2002:"
    # A day such as 2026-11-21 is a text.
    Loader.yaml_implicit_resolvers = {
        start: [(tag, pattern) for tag, pattern in resolvers if tag != f"{prefix}timestamp"]
        for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    kept = {f"{prefix}{name}" for name in ("null", "bool", "seq")}
    constructors: dict[str | None, Any] = {
        tag: reader for tag, reader in yaml.SafeLoader.yaml_constructors.items() if tag in kept
    } | {
        f"{prefix}str": _text,
        f"{prefix}int": _integer,
        f"{prefix}float": _number,
        f"{prefix}map": _mapping,
        None: _other,  # type: ignore[dict-item]
    }
    Loader.yaml_constructors = constructors
    return Loader


def _text(loader: Any, node: Any) -> str:
    value: str = loader.construct_scalar(node)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refused(node, "a text holds half of a surrogate pair") from None
    return value


def _integer(loader: Any, node: Any) -> int:
    if len(node.value) > 70:
        raise _refused(node, "a number takes more than 64 bits")
    value: int = loader.construct_yaml_int(node)
    if not -(2**63) <= value < 2**64:
        raise _refused(node, f"the number {value} takes more than 64 bits")
    return value


def _number(loader: Any, node: Any) -> float:
    value: float = loader.construct_yaml_float(node)
    if not math.isfinite(value):
        raise _refused(node, f"the number {node.value[:24]} is not finite")
    return value


def _mapping(loader: Any, node: Any) -> Any:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise _refused(node, "expected a mapping")
    found: dict[Any, Any] = {}
    yield found
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise _refused(key_node, "merged mappings are not read here")
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | None):
            raise _refused(key_node, "a key is not a text")
        if key in seen:
            raise _refused(key_node, f"the key {key!r} appears twice")
        seen.add(key)
    found.update(loader.construct_mapping(node))


def _other(_loader: Any, node: Any) -> Any:
    raise _refused(node, f"values of type {node.tag.rpartition(':')[2]!r} are not read here")


def _too_large(mark: Any) -> Any:
    import yaml

    problem = f"nested more than {DEPTH_AT_MOST} levels deep, or larger than {_NODES_AT_MOST:,} values"
    return yaml.composer.ComposerError(None, None, problem, mark)


def _refused(node: Any, problem: str) -> Any:
    import yaml

    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
