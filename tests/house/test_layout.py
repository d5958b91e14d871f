"""What every file of the repository keeps to, whoever wrote it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "opmark"
TESTS = ROOT / "tests"
CONTENT = ("bench", "datasets", "predictors", "leaderboards", "benchmarks", "docs")
LINES_AT_MOST = 400
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "manager", "misc", "common", "data", "info"}
# Folders that exist only where somebody worked. A path is spelled in two halves so that this file passes its own test.
MACHINE_PATHS = re.compile(r"(?<![\w.])/" + r"(?:work|root|home|mnt|opt|tmp/[a-z_-]+\.\d+)/\w")


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def modules() -> list[Path]:
    return [path for path in python_files(SOURCE) if path.name != "__init__.py"]


@pytest.mark.parametrize("folder", [SOURCE, TESTS], ids=["src", "tests"])
def test_no_file_is_longer_than_a_person_reads(folder: Path) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in python_files(folder)
        if (lines := len(path.read_text().splitlines())) > LINES_AT_MOST
    }
    assert not long


def test_module_names_say_what_is_inside() -> None:
    assert not [path for path in modules() if path.stem.strip("_") in FORBIDDEN_NAMES]


def test_every_module_has_a_docstring() -> None:
    bare = [path for path in python_files(SOURCE) if not path.read_text().lstrip().startswith(('"""', "#", 'r"""'))]
    assert not bare


def test_content_folders_are_not_packages() -> None:
    found = [path for folder in CONTENT for path in (ROOT / folder).rglob("__init__.py")]
    assert not found, "a package called `datasets` would shadow the well-known one"


def is_tested(module: Path, tests: dict[Path, str]) -> bool:
    """A test file bears the module's name, or a test imports it, or a test of its room names the extension."""
    parts = module.relative_to(SOURCE).with_suffix("").parts
    name, room = parts[-1].lstrip("_"), parts[0]
    if any(path.stem in {f"test_{name}", f"test_{'_'.join(parts[-2:])}"} for path in tests):
        return True
    dotted = ".".join(("opmark", *parts))
    package = re.escape(".".join(("opmark", *parts[:-1])))
    imported = re.compile(rf"{re.escape(dotted)}\b|from {package} import [^\n]*\b{re.escape(parts[-1])}\b")
    # Most texts lack the word, and looking for a word takes a hundredth of the time that an expression takes.
    if any(parts[-1] in text and imported.search(text) for text in tests.values()):
        return True
    word = name.replace("_", "-")
    named = re.compile(rf"""["'`]{re.escape(word)}["'`\s]""")
    mine = (text for path, text in tests.items() if room in path.relative_to(TESTS).parts)
    return any(word in text and named.search(text) for text in mine)


def test_tests_mirror_the_source() -> None:
    tests = {path: path.read_text() for path in python_files(TESTS) if path.parent.name != "house"}
    # Modules and folders with a leading underscore are tested through those that use them, `__main__` by running it.
    public = [path for path in modules() if not any(part.startswith("_") for part in path.relative_to(SOURCE).parts)]
    untested = [str(path.relative_to(SOURCE)) for path in public if not is_tested(path, tests)]
    assert not untested


def test_an_untested_module_would_be_noticed() -> None:
    tests = {TESTS / "bench" / "test_clock.py": "from opmark.bench import clock, plan"}
    assert is_tested(SOURCE / "bench" / "clock.py", tests)
    assert is_tested(SOURCE / "bench" / "plan.py", tests)
    assert not is_tested(SOURCE / "bench" / "worker.py", tests)


def tracked_text_files() -> list[Path]:
    folders = ("src", "tests", "docs", "bench", "benchmarks", "leaderboards", ".ci")
    suffixes = {".py", ".md", ".yaml", ".yml", ".toml", ".html", ".jinja", ".css", ".js", ".json", ".cff", ""}
    listed = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    listed += [path for path in ROOT.iterdir() if path.name != ".git"]
    skipped = {"__pycache__", "_build", "node_modules", "journals"}
    return [path for path in listed if path.is_file() and path.suffix in suffixes and not skipped & set(path.parts)]


def test_nothing_names_a_path_of_one_machine() -> None:
    found = []
    for path in tracked_text_files():
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if MACHINE_PATHS.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found


def test_readme_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", readme))
    assert {"demo", "test"} <= named
    assert named <= targets
