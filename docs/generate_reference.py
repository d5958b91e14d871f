"""Write the reference of commands, extensions and file formats: `python docs/generate_reference.py [--check]`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from opmark.bench.suite import suite
from opmark.core.files import json_text
from opmark.core.hardware.cluster import Cluster
from opmark.core.registry import extensions_in
from opmark.core.schema import json_schema
from opmark.leaderboards.making import model_problem
from opmark.leaderboards.problem import files, placement, problem
from opmark.leaderboards.scoring import track
from opmark.leaderboards.submissions import manifest

HERE = Path(__file__).resolve().parent / "reference"
EXAMPLE = "Example: "
NOTICE = "<!-- Made by docs/generate_reference.py (make docs). Do not edit. -->\n"
EXTENSIONS = (
    ("Kinds of kernels", "opmark.kinds"),
    ("Families of networks", "opmark.models.zoo"),
    ("Runtimes", "opmark.bench.backends"),
    ("Checks of a release", "opmark.datasets.checks"),
    ("Published tables that can be imported", "opmark.datasets.importers"),
    ("Estimators", "opmark.predictors.estimators"),
    ("Placers", "opmark.leaderboards.placers"),
    ("Objectives of a problem", "opmark.leaderboards.simulator.objectives"),
    ("Published profiles of the simulator", "opmark.leaderboards.simulator.published"),
    ("Synchronisation of replicas", "opmark.leaderboards.problem.rules.synchronisations"),
    ("Schedules of micro-batches", "opmark.leaderboards.problem.rules.pipeline_schedules"),
    ("Arrival processes of requests", "opmark.leaderboards.problem.rules.arrival_processes"),
    ("Formats of placement problems", "opmark.leaderboards.making.importers"),
    ("Lower bounds", "opmark.leaderboards.bounds.relaxations"),
    ("Metrics of a track", "opmark.leaderboards.scoring.metrics"),
    ("Pages of the site", "opmark.leaderboards.site.pages"),
)

# Files that users write by hand or by program.
FILES = {
    "suite": (suite.Suite, suite.SCHEMA),
    "cluster": (Cluster, model_problem.CLUSTER_SCHEMA),
    "problem": (problem.Problem, files.SCHEMA),
    "solution": (placement.Solution, placement.SCHEMA),
    "track": (track.Rules, track.SCHEMA),
    "submission": (manifest.SubmissionManifest, manifest.SCHEMA),
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
    """One section per command: its help, its usage and its options."""
    from opmark.cli.main import EPILOG, cli

    parts = [NOTICE, "# Commands\n", f"{_sentences(cli.help)}\n", f"{EPILOG}\n"]
    parts += [
        "Every option can also be set by an environment variable: `OPMARK_`, the command and the option in capitals, "
        "such as `OPMARK_WORKSPACE`.\n"
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
    """A help text as Markdown paragraphs; a paragraph that click does not wrap (`\\b`) becomes a code block."""
    return "\n\n".join(
        f"```text{paragraph[1:]}\n```" if paragraph.startswith("\b") else _escaped(" ".join(paragraph.split()))
        for paragraph in (text or "").strip(" \n").split("\n\n")
    )


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def extensions() -> str:
    """One table per registry: the names of its extensions, and the first sentence of each file."""
    each = "Each extension is one file, named after it with `_` for `-`, or an entry of the table in its folder.\n"
    parts = [NOTICE, "# Extensions\n", each]
    for title, package in EXTENSIONS:
        rows = [f"| `{item.name}` | {_cell(item.summary)} |" for item in extensions_in(package)]
        parts.append(f"## {title}\n")
        parts.append(f"In `src/{package.replace('.', '/')}/`.\n")
        parts.append("\n".join(["| name | description |", "|---|---|", *rows]) + "\n" if rows else "None yet.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
