"""The search is compiled once, before the tests that need it; parallel workers wait for the one that compiles."""

import pytest

# Folders with tests that place or simulate.
COMPILED = frozenset({"search", "placers", "simulator", "bounds", "scoring", "contracts", "e2e"})


@pytest.fixture(scope="session", autouse=True)
def _compiled_search(request: pytest.FixtureRequest) -> None:
    if any(COMPILED.intersection(item.path.parts) for item in request.session.items):
        from opmark.leaderboards.scoring.compilation import compile_once

        compile_once()
