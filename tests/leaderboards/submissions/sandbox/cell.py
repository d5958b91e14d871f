"""A sandbox with small limits for hostile scripts."""

import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from opmark.core.errors import UnavailableError
from opmark.leaderboards.submissions.sandbox.bubblewrap import Bubblewrap
from opmark.leaderboards.submissions.sandbox.choice import sandbox
from opmark.leaderboards.submissions.sandbox.limits import Limits
from opmark.leaderboards.submissions.sandbox.runtime import environment
from opmark.leaderboards.submissions.sandbox.session import Heard, listen

MIB = 2**20
LIMITS = Limits(
    memory_bytes=512 * MIB,
    cpu_s=20,
    processes=16,
    file_bytes=8 * MIB,
    temporary_bytes=16 * MIB,
    output_bytes=2 * MIB,
)
# What every script starts with: `tried` says what an attempt gave, or how it failed.
PRELUDE = """
import json, os, sys
def tried(attempt):
    try:
        return attempt()
    except BaseException as error:
        return f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}"
def say(**found):
    print(json.dumps(found, default=str), flush=True)
"""
Cell = Callable[..., Heard]


def real_sandbox() -> Bubblewrap:
    """Bubblewrap, or a skipped test; the continuous integration forbids skipping."""
    try:
        found = sandbox()
    except UnavailableError as error:
        if os.environ.get("OPMARK_REQUIRE_SANDBOX"):
            pytest.fail(f"the attacks must be tried here, but {error}")
        pytest.skip(str(error))
    assert isinstance(found, Bubblewrap)
    return found


def attack(folder: Path, script: str, *, text: bytes = b"", seconds: float = 20.0, limits: Limits = LIMITS) -> Heard:
    """Run a hostile script in the sandbox; it starts in its folder and reads `text`."""
    (folder / "attack.py").write_text(PRELUDE + textwrap.dedent(script))
    confinement = real_sandbox().confined(
        ("python3", "-S", "attack.py"), folder, limits=limits, environment=environment(budget_s=1, seed=0)
    )
    with confinement as confined:
        return listen(confined, text, seconds=seconds, output_bytes=limits.output_bytes)


def said(heard: Heard) -> dict[str, object]:
    """The values that `say` printed."""
    assert heard.output, f"{heard.end} {heard.code}: {heard.errors}"
    found: dict[str, object] = json.loads(heard.output.splitlines()[0])
    return found
