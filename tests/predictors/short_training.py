"""Shorter training for tests that use predictors: fewer and larger steps of the trees, a coarser search for lengths."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

# Trees reach with this rate in a hundred rounds as far as with the usual one in four hundred.
LEARNING_RATE, ROUNDS_AT_MOST, PATIENCE = 0.2, 100, 10
SEARCH_ROWS, SEARCH_STEPS = 80, 25


@contextmanager
def short_training() -> Iterator[None]:
    """All training in this process is short meanwhile; tests of learning itself do without."""
    from opmark.predictors.learners import gaussian_process, residual, trees

    usual = trees.settings

    def settings(rows: int) -> dict[str, Any]:
        return {**usual(rows), "learning_rate": LEARNING_RATE}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "settings", settings)
        patch.setattr(trees, "_MOST_ROUNDS", ROUNDS_AT_MOST)
        patch.setattr(trees, "_PATIENCE", PATIENCE)
        patch.setattr(residual, "SEARCH_ROWS", SEARCH_ROWS)
        patch.setattr(residual, "_REFINED_SEARCH_ROWS", SEARCH_ROWS)
        patch.setattr(gaussian_process, "SEARCH_STEPS", SEARCH_STEPS)
        yield


_FOREVER = ExitStack()


def shorten() -> None:
    """Training in this process is short from now on: for workers of a cluster."""
    _FOREVER.enter_context(short_training())
