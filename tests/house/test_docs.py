"""Documentation that cannot rot: it builds, quotes commands that exist, and shows files that load."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from opmark.cli.main import cli
from opmark.leaderboards.problem.checks import checked

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONTENT = [ROOT / folder / "README.md" for folder in ("bench", "datasets", "predictors", "leaderboards", "benchmarks")]
FOLDERS = [*CONTENT, ROOT / "bench" / "graphs" / "README.md"]
PAGES = sorted(path for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *FOLDERS] if "_build" not in path.parts)


def test_the_generated_reference_is_up_to_date() -> None:
    command = [sys.executable, str(DOCS / "generate_reference.py"), "--check"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    for module in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    finished = subprocess.run([*command, "-d", str(tmp_path / "trees")], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "https://fonts" not in (tmp_path / "index.html").read_text()


def command_lines() -> Iterator[tuple[Path, str]]:
    """Every `opmark …` line of a code block, fenced or indented: what a reader copies. Examples of the help, too."""
    for page in PAGES:
        text = page.read_text()
        blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, flags=re.DOTALL)
        lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
        lines += [line.strip() for line in re.findall(r"^ {4}opmark .*$", text, flags=re.MULTILINE)]
        if page.name == "commands.md":
            lines = re.findall(r"^Example: `(opmark [^`]+)`$", text, flags=re.MULTILINE)
        for line in lines:
            if line.startswith("opmark "):
                yield page, line.partition(" #")[0].replace("...", "")


def command_spans() -> Iterator[tuple[Path, str]]:
    """Every `opmark …` in running text; it may leave out what is not the point."""
    for page in PAGES:
        if page.name not in {"commands.md", "CHANGELOG.md"}:
            for line in re.findall(r"`(opmark [^`]+)`", page.read_text()):
                yield page, line


def problem_with(line: str) -> str | None:
    """What is wrong with a quoted command: an unknown command, or an option it does not have."""
    command: click.Command = cli
    context = click.Context(cli, info_name="opmark", **cli.context_settings)
    for token in shlex.split(line)[1:]:
        if token.startswith("-"):
            known = {
                name
                for item in [*command.get_params(context), *cli.params]
                for name in (*item.opts, *item.secondary_opts)
            }
            name = token.partition("=")[0]
            if name not in known:
                return f"{context.command_path} has no option {name}"
        elif isinstance(command, click.Group):
            alternatives = token.split("|")
            if len(alternatives) > 1:
                unknown = [name for name in alternatives if command.get_command(context, name) is None]
                return f"{context.command_path} has no {unknown}" if unknown else None
            child = command.get_command(context, token)
            if child is None:
                return f"{context.command_path} has no command {token}"
            command, context = child, click.Context(child, info_name=token, parent=context)
    return None


def refusal_of(line: str) -> str | None:
    """What the command line says of a whole command that is only parsed: too many words, a wrong value, one missing."""
    command: click.Command = cli
    context = click.Context(cli, info_name="opmark", **cli.context_settings)
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        name = words.pop(0)
        child = command.get_command(context, name)
        if child is None:
            return f"{context.command_path} has no command {name}"
        command, context = child, click.Context(child, info_name=name, parent=context)
    try:
        command.make_context(context.info_name, words, parent=context.parent)
    except click.BadParameter as error:
        return None if "does not exist" in error.message else error.format_message()  # a reader's own files
    except click.UsageError as error:
        return error.message
    return None


def test_quoted_commands_exist() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}: {line}: {problem}"
        for page, line in command_spans()
        if (problem := problem_with(line))
    ]
    assert not wrong


def test_command_lines_can_be_typed_as_they_are() -> None:
    lines = list(command_lines())
    assert len(lines) > 100
    wrong = [f"{page.relative_to(ROOT)}: {line}: {refusal}" for page, line in lines if (refusal := refusal_of(line))]
    assert not wrong


def test_content_that_is_named_exists() -> None:
    named = [
        (page, word) for page, line in command_lines() for word in line.split() if word.startswith("leaderboards/")
    ]
    assert named
    assert not [f"{page.relative_to(ROOT)}: {word}" for page, word in named if not (ROOT / word).exists()]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("opmark leaderboards standings", "Missing option '--track'"),
        ("opmark bench run small --budget later", "later"),
        ("opmark bench run small quick", "unexpected extra argument"),
        ("opmark datasets shou x", "no command shou"),
    ],
)
def test_a_wrong_command_line_would_be_noticed(line: str, said: str) -> None:
    assert said in (refusal_of(line) or "")


def test_what_make_builds_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        name
        for page in PAGES
        for name in re.findall(r"`make ([a-z]+)`|^make ([a-z]+)\b", page.read_text(), flags=re.MULTILINE)
    }
    assert {one or other for one, other in named} <= targets


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not broken


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set()
    for index in (DOCS / "index.md", DOCS / "decisions" / "index.md"):
        for block in re.findall(r"```\{toctree\}(.*?)```", index.read_text(), flags=re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(index.parent / f"{name}.md").resolve() for name in names}
    assert listed == {page.resolve() for page in PAGES if DOCS in page.parents} - {(DOCS / "index.md").resolve()}


def test_decisions_have_four_parts_and_numbers_in_order() -> None:
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text()
        assert text.startswith(f"# {int(page.name[:4])}. ")
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Evidence", "Consequences")), page.name


def test_json_examples_load() -> None:
    from opmark.core.schema import convert
    from opmark.leaderboards.problem.placement import Solution
    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.simulator.evaluation import evaluate

    blocks = re.findall(r"```json\n(.*?)```", (DOCS / "reference" / "json.md").read_text(), flags=re.DOTALL)
    problem_json, solution_json = (json.loads(block) for block in blocks)
    assert problem_json.pop("schema") == solution_json.pop("schema") == 1
    problem = checked(convert(problem_json, Problem, where="json.md"), "json.md")
    solution = convert(solution_json, Solution, where="json.md")
    assert evaluate(problem, solution).cost == 32


def test_the_example_of_a_cluster_loads(tmp_path: Path) -> None:
    from opmark.leaderboards.making.model_problem import load_cluster

    (block,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "reference" / "json.md").read_text(), flags=re.DOTALL)
    (tmp_path / "cluster.yaml").write_text(block)
    assert [device.name for device in load_cluster(tmp_path / "cluster.yaml").devices] == ["core0", "core1"]


def test_every_extension_point_is_in_the_architecture() -> None:
    text = (DOCS / "architecture.md").read_text()
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    points = [match for source in sources for match in re.findall(r'Registry\(\s*"opmark\.([\w.]+)", "(\w+)"', source)]
    assert len(points) >= 15
    rows = [f"| `src/opmark/{package.replace('.', '/')}/` | `{attribute}`" for package, attribute in points]
    assert not [row for row in rows if row not in text]


@pytest.mark.parametrize("room", ["leaderboards", "bench", "predictors"])
def test_the_architecture_draws_the_parts_of_a_big_room(room: str) -> None:
    text = (DOCS / "architecture.md").read_text()
    drawing = text.partition(f"**{room}**\n\n```text\n")[2].partition("```")[0]
    folder = ROOT / "src" / "opmark" / room
    parts = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    assert {line.split()[0] for line in drawing.splitlines()} == parts


def test_the_architecture_draws_every_room() -> None:
    text = (DOCS / "architecture.md").read_text()
    rooms = {path.name for path in (ROOT / "src" / "opmark").iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))


def test_glossary_is_sorted() -> None:
    terms = re.findall(r"^([a-z ]+)\n: ", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)
    assert len(terms) > 25
    assert terms == sorted(terms)
