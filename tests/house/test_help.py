"""`--help` is instant, every command explains itself, and the documentation lists it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from opmark.cli.main import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "torch",
    "onnxruntime",
    "onnx",
    "lightgbm",
    "pandas",
    "numpy",
    "pyarrow",
    "pydantic",
    "numba",
    "scipy",
    "transformers",
)
# What click leaves free at the right of a terminal.
_MARGIN = 2
PROBE = """
import json, runpy, sys
heavy, sys.argv = json.loads(sys.argv[1]), ["opmark", *sys.argv[2:]]
try:
    runpy.run_module("opmark", run_name="__main__")
except SystemExit as end:
    print("loaded:", json.dumps([end.code, sorted(set(sys.modules) & set(heavy))]))
"""


def loaded_by(*arguments: str) -> list[str]:
    command = [sys.executable, "-c", PROBE, json.dumps(HEAVY), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(finished.stdout.rpartition("loaded: ")[2])
    assert code in (0, None)
    return list(modules)


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by("--help") == []


def test_group_help_loads_nothing_heavy() -> None:
    for name in COMMANDS.names():
        assert loaded_by(name, "--help") == [], name


def test_the_console_script_answers() -> None:
    script = Path(sys.executable).with_name("opmark")
    if not script.exists():
        pytest.skip("opmark is not installed as a script in this environment")
    finished = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    assert "Exit codes: 0 fine" in " ".join(finished.stdout.split())


def commands() -> Iterator[tuple[str, click.Command]]:
    pending: list[tuple[str, click.Command]] = [("opmark", cli)]
    while pending:
        path, command = pending.pop()
        yield path, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                pending.append((f"{path} {name}", child))


def test_every_command_and_option_has_help() -> None:
    silent = []
    for path, command in commands():
        if not command.help:
            silent.append(path)
        silent += [
            f"{path} {option.opts[0]}"
            for option in command.params
            if isinstance(option, click.Option) and not option.help
        ]
    assert not silent


def test_a_list_of_commands_cuts_no_sentence_on_a_narrow_terminal() -> None:
    cut = []
    for path, group in commands():
        if isinstance(group, click.Group):
            children = {name: COMMANDS.load(name) for name in COMMANDS.names()} if group is cli else group.commands
            width = 80 - len("    ") - max(map(len, children)) - len("  ") - _MARGIN
            cut += [f"{path} {name}" for name, one in children.items() if one.get_short_help_str(width).endswith("...")]
    assert not cut


def test_every_command_has_an_example_that_fits_a_line() -> None:
    bad = []
    for path, command in commands():
        if not isinstance(command, click.Group) and path != "opmark completion":  # its help is made of examples
            _, example, line = (command.epilog or "").partition("Example: ")
            # `opmark predict` and `opmark predictors predict` are one command
            named = line.startswith((path, path.replace("predictors predict", "predict")))
            if not example or not named or len(f"  {command.epilog}") > 80 - _MARGIN:
                bad.append(f"{path}: {command.epilog}")
    assert not bad


def test_every_command_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text()
    missing = [path for path, _ in commands() if path.count(" ") == 1 and f"`{path}`" not in reference]
    assert not missing
