"""The structure of the source: small folders, no circles of imports, names that cannot be mistaken, short functions."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from opmark.core.registry import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "opmark"
MODULES_AT_MOST = 17
LINES_OF_A_FUNCTION = 60
FEWEST_LINES = 20
# Every file of these folders is an extension, so they may grow.
EXTENSIONS = sorted(
    {
        *(package for packages in PACKAGES.values() for package in packages),
        *(
            "opmark.cli.commands",
            "opmark.datasets.checks",
            "opmark.leaderboards.site.pages",
        ),
    }
)
BIG_ROOMS = ("opmark.leaderboards", "opmark.bench", "opmark.predictors")
QUESTION = re.compile(r"(what|how|whether|who|whom|whoever|whatever)\b", flags=re.IGNORECASE)


def dotted(path: Path) -> str:
    """The module that a file is."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)


@cache
def parsed() -> tuple[tuple[Path, ast.Module], ...]:
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in sources())


def is_extension(module: str) -> bool:
    return module.rpartition(".")[0] in EXTENSIONS


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Imports inside functions and for type checkers count like any other."""
    return grimp.build_graph("opmark", cache_dir=None)


def test_a_folder_holds_few_modules() -> None:
    count = Counter(path.parent for path in sources() if path.name != "__init__.py")
    crowded = {dotted(folder): n for folder, n in count.items() if n > MODULES_AT_MOST}
    assert not {folder: n for folder, n in crowded.items() if folder not in EXTENSIONS}


def circle(imports: dict[str, set[str]]) -> list[str]:
    """One circle of modules that import one another, or nothing."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_one_another_in_a_circle(graph: grimp.ImportGraph) -> None:
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert not circle(imports)


def test_a_circle_would_be_noticed() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not circle({"a": {"b", "c"}, "b": {"c"}})


@pytest.mark.parametrize("package", EXTENSIONS)
def test_extensions_do_not_import_their_siblings(graph: grimp.ImportGraph, package: str) -> None:
    files = {module for module in graph.find_children(package) if not module.rpartition(".")[2].startswith("_")}
    files = {module for module in files if not graph.find_children(module)}
    assert files or package.endswith("importers"), "the folder is empty or has moved"
    assert not {
        module: siblings for module in files if (siblings := graph.find_modules_directly_imported_by(module) & files)
    }


def test_big_rooms_have_layers() -> None:
    contracts = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[[tool.importlinter.contracts]]")
    for room in BIG_ROOMS:
        mine = [text for text in contracts if f'containers = ["{room}"]' in text]
        assert len(mine) == 1, f"{room} needs one contract of layers in pyproject.toml"
        assert 'type = "layers"' in mine[0]
        assert "exhaustive = true" in mine[0]


def test_no_public_class_name_stands_twice() -> None:
    where = defaultdict(list)
    for path, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(dotted(path))
    assert not {name: modules for name, modules in where.items() if len(modules) > 1}


def lookalikes(names: list[str]) -> list[tuple[str, str]]:
    """Pairs that differ in an ending alone, such as `store` and `stored`."""
    ending = re.compile(r"(?:e|s|d|ed|er|ing|ion|able)+$")
    stems: dict[str, str] = {}
    found = []
    for name in sorted(names):
        stem = ending.sub("", name) or name
        if stem in stems:
            found.append((stems[stem], name))
        stems[stem] = name
    return found


def test_a_file_name_cannot_be_mistaken_for_its_neighbour() -> None:
    folders = defaultdict(list)
    for path in sources():
        if path.name != "__init__.py":
            folders[path.parent].append(path.stem)
    assert not {dotted(folder): pairs for folder, names in folders.items() if (pairs := lookalikes(names))}


def test_lookalikes_would_be_noticed() -> None:
    assert lookalikes(["store", "stored"])
    assert lookalikes(["transfer", "transfers"])
    assert lookalikes(["exhibit", "exhibition"])
    assert not lookalikes(["placement", "place", "problem", "priority"])


def is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Loops that numba compiles are exempt: splitting them costs speed."""
    names = {node.id for one in function.decorator_list for node in ast.walk(one) if isinstance(node, ast.Name)}
    return bool(names & {"compiled", "uncounted"})


def test_functions_fit_on_a_screen() -> None:
    long = {
        f"{dotted(path)}.{node.name}": lines
        for path, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LINES_OF_A_FUNCTION
        and not is_compiled(node)
    }
    assert not long


def test_a_file_is_a_concept_and_no_crumb() -> None:
    short = {
        dotted(path): lines
        for path in sources()
        if path.name not in {"__init__.py", "__main__.py"}
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) < FEWEST_LINES
        and not is_extension(dotted(path))
    }
    assert not short


def test_docstrings_begin_with_their_subject() -> None:
    found = []
    for path, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = (ast.get_docstring(node) or "").lstrip("*_`\"'( ")
                if QUESTION.match(text):
                    found.append(f"{dotted(path)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    assert not found


def test_json_has_one_reader_with_limits() -> None:
    readers = {
        dotted(path)
        for path, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"load", "loads"} and ast.unparse(node.value) == "json"
    }
    # A worker's requests come from the process that started it.
    assert readers == {"opmark.core.reading", "opmark.bench.worker.server", "opmark.bench.execution.worker"}
