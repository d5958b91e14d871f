"""Write the reference of commands, extensions and file formats: `python docs/generate_reference.py [--check]`."""

import ast
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from opmark.bench.suite import suite
from opmark.core.cluster import Cluster
from opmark.core.files import json_text
from opmark.core.schema import json_schema
from opmark.leaderboards.making import model_problem as recipe
from opmark.leaderboards.problem import placement, problem
from opmark.leaderboards.scoring import track
from opmark.leaderboards.submissions import manifest

HERE = Path(__file__).resolve().parent / "reference"
EXAMPLE = "Example: "
NOTICE = "<!-- Made by docs/generate_reference.py (make docs). Do not edit. -->\n"
EXTENSIONS = (
    ("Kinds of kernels", "opmark.kinds"),
    ("Families of networks", "opmark.models.zoo"),
    ("Runtimes that can be measured", "opmark.bench.backends"),
    ("Checks of a release", "opmark.datasets.checks"),
    ("Tables of others that can be imported", "opmark.datasets.importers"),
    ("Estimators", "opmark.predictors.estimators"),
    ("Placers", "opmark.leaderboards.placers"),
    ("Objectives of a problem", "opmark.leaderboards.simulator.objectives"),
    ("Profiles of the simulator", "opmark.leaderboards.simulator.published"),
    ("Synchronisation of replicas", "opmark.leaderboards.problem.rules.synchronisations"),
    ("Schedules of micro-batches", "opmark.leaderboards.problem.rules.pipeline_schedules"),
    ("Arrivals of requests", "opmark.leaderboards.problem.rules.arrival_processes"),
    ("Formats of placement problems", "opmark.leaderboards.making.importers"),
    ("Lower bounds", "opmark.leaderboards.bounds.relaxations"),
    ("Metrics of a board", "opmark.leaderboards.scoring.metrics"),
    ("Pages of the site", "opmark.leaderboards.site.pages"),
)

# What people write by hand or hand over by program.
FILES = {
    "suite": (suite.Suite, suite.SCHEMA),
    "cluster": (Cluster, recipe.CLUSTER_SCHEMA),
    "problem": (problem.Problem, problem.SCHEMA),
    "solution": (placement.Solution, placement.SCHEMA),
    "track": (track.Rules, track.SCHEMA),
    "submission": (manifest.Manifest, manifest.SCHEMA),
}


def main() -> int:
    pages = {"commands.md": commands(), "extensions.md": extensions()}
    pages |= {f"{name}.schema.json": json_text(json_schema(kind, schema=n)) for name, (kind, n) in FILES.items()}
    stale = [name for name, text in pages.items() if not _is(HERE / name, text)]
    if "--check" in sys.argv[1:]:
        for name in stale:
            sys.stderr.write(f"docs/reference/{name} is out of date: run `make docs`\n")
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(pages[name], encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def commands() -> str:
    """One section per command, its help, its arguments and options."""
    from opmark.cli.main import EPILOG, cli

    parts = [NOTICE, "# Commands\n", f"{_sentences(cli.help)}\n", f"{EPILOG}\n"]
    parts += [
        "An option may also be given as an environment variable: `OPMARK_` and the path of the command and the option "
        "in capitals, such as `OPMARK_WORKSPACE`.\n"
    ]
    for depth, context in _walk(click.Context(cli, info_name="opmark")):
        command = context.command
        parts.append(f"{'#' * (depth + 1)} `{context.command_path}`\n")
        parts.append(f"{_sentences(command.help)}\n")
        usage = " ".join(command.collect_usage_pieces(context))
        parts.append(f"```text\n{context.command_path} {usage}\n```\n")
        if command.epilog:
            parts.append(f"{EXAMPLE}`{command.epilog.removeprefix(EXAMPLE)}`\n")
        options = [item for item in command.params if isinstance(item, click.Option)]
        if options:
            parts.append(_options(options, context))
    return "\n".join(parts)


def _walk(context: click.Context, depth: int = 0) -> Iterator[tuple[int, click.Context]]:
    command = context.command
    if depth:
        yield depth, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _walk(click.Context(child, info_name=name, parent=context), depth + 1)


def _options(options: list[click.Option], context: click.Context) -> str:
    rows = ["| option | meaning |", "|---|---|"]
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            spelled, meaning = record
            rows.append(f"| `{spelled}` | {_cell(meaning)} |".replace("`|", "` |"))
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _sentences(text: str | None) -> str:
    """A help text as Markdown paragraphs; what click is told not to wrap (`\\b`) is shown as it is."""
    return "\n\n".join(
        f"```text{paragraph[1:]}\n```" if paragraph.startswith("\b") else _escaped(" ".join(paragraph.split()))
        for paragraph in (text or "").strip(" \n").split("\n\n")
    )


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def extensions() -> str:
    """One table per registry: names and the first sentence of each file."""
    parts = [NOTICE, "# Extensions\n", "Each is one file; the file name is the name, with `_` for `-`.\n"]
    for title, package in EXTENSIONS:
        rows = [f"| `{name}` | {_cell(sentence)} |" for name, sentence in _modules(package)]
        parts.append(f"## {title}\n")
        parts.append(f"In `src/{package.replace('.', '/')}/`.\n")
        parts.append("\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n" if rows else "None yet.\n")
    return "\n".join(parts)


def _modules(package: str) -> Iterator[tuple[str, str]]:
    """Names and first docstring lines, read without importing, so that nothing optional needs to be installed."""
    found = importlib.util.find_spec(package)
    assert found is not None
    for folder in found.submodule_search_locations or []:
        for item in sorted(pkgutil.iter_modules([folder]), key=lambda item: item.name):
            if not item.name.startswith("_"):
                tree = ast.parse((Path(folder) / f"{item.name}.py").read_text(encoding="utf-8"))
                yield item.name.replace("_", "-"), (ast.get_docstring(tree) or "").split("\n\n")[0]


if __name__ == "__main__":
    sys.exit(main())
