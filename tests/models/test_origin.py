"""The origin of a graph changes with the code that the graph passes through, and with no other code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from opmark.models import origin
from opmark.models.origin import code_id, origin_of, reading_code
from opmark.models.source import source_of

KINDS = Path(origin.__file__).resolve().parents[1] / "kinds"
UNREAD = {"code_path", "details", "draw", "features", "shape_group", "steps", "to_aten", "to_onnx", "vary"}
FIELDS = {"categories", "dtypes", "languages", "most_bytes", "most_flops", "space"}
OTHER = {"aten": "onnx", "onnx": "aten"}


def members(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for item in tree.body:
        for member in item.body if isinstance(item, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef):
                yield f"def {member.name}", member
            elif isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
                yield member.targets[0].id, member


@pytest.mark.parametrize("language", ["aten", "onnx"])
def test_reading_code_is_what_the_parser_says(language: str) -> None:
    left_out = {*(f"def {name}" for name in UNREAD), f"def from_{OTHER[language]}", *FIELDS, f"{OTHER[language]}_ops"}
    files = sorted(KINDS.glob("*.py"))
    assert len(files) > 25
    for path in files:
        text = path.read_text()
        lines = text.splitlines()
        for name, member in members(ast.parse(text)):
            if name in left_out:
                for number in range(member.lineno - 1, member.end_lineno or 0):
                    lines[number] = ""
        lines = [line for line in lines if "import" not in line or "_libraries" not in line]
        kept = [line for line in reading_code(text, language).splitlines() if line.strip()]
        assert kept == [line for line in lines if line.strip()], path.name


def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> dict[str, bool]:
    """True for each language whose code counts as changed where `before` becomes `after` in a small kind."""
    code = """class OneKind(Kind):
    onnx_ops = frozenset({"One"})
    space = {
        "size": Range(1, 8),
    }

    def work(self, p):
        return 1

    def features(
        self, p
    ) -> dict[str, float]:
        return {"a": 1}

    def from_onnx(self, node):
        return 2

    def from_aten(self, call):
        return 3
"""
    found = {}
    for language in OTHER:
        ids = []
        for text in (code, code.replace(before, after)):
            folder = tmp_path / "kinds"
            folder.mkdir(exist_ok=True)
            (folder / "one.py").write_text(text)
            monkeypatch.setattr(origin, "_PACKAGE", tmp_path)
            code_id.cache_clear()
            ids.append(code_id(f"kinds:{language}"))
        found[language] = ids[0] != ids[1]
    code_id.cache_clear()
    return found


@pytest.mark.parametrize(
    ("before", "after", "aten", "onnx"),
    [
        ("return 1", "return 9", True, True),
        ("return 2", "return 9", False, True),
        ("return 3", "return 9", True, False),
        ('"a": 1', '"a": 9', False, False),
        ("Range(1, 8)", "Range(1, 9)", False, False),
        ('{"One"}', '{"Two"}', False, True),
    ],
)
def test_a_change_counts_where_a_graph_passes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, aten: bool, onnx: bool
) -> None:
    assert changed(tmp_path, monkeypatch, before, after) == {"aten": aten, "onnx": onnx}


def test_the_other_languages_helpers_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kinds" / "_onnx").mkdir(parents=True)
    (tmp_path / "kinds" / "_onnx" / "nodes.py").write_text("value = 1\n")
    before = {language: changed(tmp_path, monkeypatch, "nothing", "") for language in OTHER}
    assert not any(any(found.values()) for found in before.values())
    ids = {}
    for value in (1, 2):
        (tmp_path / "kinds" / "_onnx" / "nodes.py").write_text(f"value = {value}\n")
        code_id.cache_clear()
        ids[value] = [code_id("kinds:aten"), code_id("kinds:onnx")]
    code_id.cache_clear()
    assert ids[1][0] == ids[2][0]
    assert ids[1][1] != ids[2][1]


def test_the_reader_of_programs_counts_for_programs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "own.pt2"
    program.write_bytes(b"")
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(origin, "code_id", lambda *places: asked.append(places) or "0")
    for name in (str(program), "squeeze-small"):
        origin_of(source_of(name), "aten", 1, {})
    assert ["models/programs" in places for places in asked] == [True, *[False] * (len(asked) - 1)]


def test_rules_of_libraries_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kinds" / "_libraries").mkdir(parents=True)
    monkeypatch.setattr(origin, "_PACKAGE", tmp_path)
    ids = set()
    for value, line in ((1, ""), (2, "from opmark.kinds._libraries import rules\n")):
        (tmp_path / "kinds" / "_libraries" / "rules.py").write_text(f"value = {value}\n")
        (tmp_path / "kinds" / "one.py").write_text(f"{line}kept = 1\n")
        code_id.cache_clear()
        ids.add((code_id("kinds:aten"), code_id("kinds:onnx")))
    code_id.cache_clear()
    assert len(ids) == 1
