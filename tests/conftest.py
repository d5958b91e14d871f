"""The search is compiled once, before the tests that need it; parallel workers wait for the one that compiles."""

import pytest

# Folders with tests that place or simulate.
COMPILED = ("leaderboards", "contracts", "studies")


@pytest.fixture(scope="session", autouse=True)
def _compiled_search(request: pytest.FixtureRequest) -> None:
    if any(name in item.path.parts for item in request.session.items for name in COMPILED):
        from opmark.leaderboards.scoring.compilation import compile_once

        compile_once()
