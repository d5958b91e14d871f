"""What torch raises at a call it does not take, as one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from opmark.core.errors import MeasurementError

# NotImplementedError is torch's own word for an operator without a kernel on this device.
_REFUSALS = (RuntimeError, IndexError, TypeError, NotImplementedError)


@contextmanager
def refusal() -> Iterator[None]:
    """Run the block; raises `MeasurementError` where torch refuses what it does."""
    try:
        yield
    except _REFUSALS as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise MeasurementError(f"torch refuses it: {said[:200]}") from error
