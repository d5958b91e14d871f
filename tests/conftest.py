"""Options of the tests of readers. The search is compiled once, before the tests that need it."""

import pytest

# Folders with tests that place or simulate.
COMPILED = frozenset({"search", "placers", "simulator", "bounds", "scoring", "contracts", "e2e", "readers"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a nightly run mutate files for longer."""
    group = parser.getgroup("readers")
    group.addoption("--fuzz-seconds", type=float, default=0.0, help="Mutate each kind of file for this long.")
    group.addoption("--fuzz-seed", type=int, default=0, help="The seed of the mutations.")
    group.addoption("--flips", type=int, default=0, help="Flip this many bits of each kind of file.")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile before the first test begins, so that no test's time limit pays for it."""
    if not session.config.option.collectonly and any(COMPILED.intersection(item.path.parts) for item in session.items):
        from opmark.leaderboards.scoring.compilation import compile_once

        compile_once()
