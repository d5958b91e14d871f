"""How a placer hands over an answer before its time is up: the last complete one counts, should it not come back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opmark.leaderboards.problem.placement import Solution

_listener: ContextVar[Callable[[Solution], None] | None] = ContextVar("listener", default=None)


def offer(solution: Solution) -> None:
    """Hand over a complete solution and go on; where nobody listens this does nothing."""
    listener = _listener.get()
    if listener is not None:
        listener(solution)


@contextmanager
def listening(listener: Callable[[Solution], None] | None) -> Iterator[None]:
    """Give whatever is offered within the block to `listener`; to nobody where that is None."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
