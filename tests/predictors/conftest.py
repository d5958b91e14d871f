"""Training is short where predictors are used, and as long as ever where learning itself is tested."""

from collections.abc import Iterator

import pytest
from tests.predictors.short_training import short_training

USING = frozenset({"judging", "model", "transfer"})
LEARNING = frozenset({"test_published_tables.py", "test_training.py"})


@pytest.fixture(scope="module", autouse=True)
def _training(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.parent.name not in USING or request.path.name in LEARNING:
        yield
        return
    with short_training():
        yield


@pytest.fixture
def short() -> Iterator[None]:
    """Training is short in a test that is about something else."""
    with short_training():
        yield
