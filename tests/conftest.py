"""The search is compiled once, before the tests that need it; parallel workers wait for the one that compiles."""

import pytest

# Folders with tests that place or simulate.
COMPILED = frozenset({"search", "placers", "simulator", "bounds", "scoring", "contracts", "e2e"})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile before the first test begins, so that no test's time limit pays for it."""
    if not session.config.option.collectonly and any(COMPILED.intersection(item.path.parts) for item in session.items):
        from opmark.leaderboards.scoring.compilation import compile_once

        compile_once()
