import signal
import threading
from collections.abc import Iterator

import pytest

from opmark.bench.run.progress import on_interrupt


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A shell starts what runs in the background with Ctrl-C ignored, tests among it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_ctrl_c_asks_and_the_second_interrupts() -> None:
    asked = []

    def press_twice() -> None:
        with on_interrupt(lambda: asked.append(True)):
            signal.raise_signal(signal.SIGINT)
            assert asked == [True]
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        press_twice()
    assert asked == [True]


def test_what_was_there_before_is_there_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with on_interrupt(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_runs_the_block_as_it_is() -> None:
    ran = []

    def block() -> None:
        with on_interrupt(lambda: ran.append("stopped")):
            ran.append("ran")

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert ran == ["ran"]
