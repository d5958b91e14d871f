"""Calls of the command line for tests about predictors."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from opmark.cli.main import cli

KINDS = ("gemm", "softmax", "elementwise")


def opmark(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--workspace", str(root), *arguments])


def answered(root: Path, *arguments: str) -> Any:
    result = opmark(root, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
