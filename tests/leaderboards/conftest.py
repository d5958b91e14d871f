"""What tests of several parts of the leaderboards share."""

from collections.abc import Iterator

import pytest
from tests.leaderboards.chromium import Browser, find_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for the tests of one module; they are skipped where there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on PATH nor in OPMARK_CHROMIUM")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()
