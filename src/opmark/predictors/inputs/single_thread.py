"""One thread for linear algebra: on few and busy cores, two that wait for each other take ten times as long."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_thread() -> Iterator[None]:
    """Within the block, numpy's and scipy's linear algebra run on one thread."""
    import scipy.linalg  # noqa: F401 (only libraries that are loaded can be limited)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
