"""Mutated files against every reader: what is loaded is loaded, and all else is one of OpMark's own errors.

A short run is part of every test run. A long one, for a minute per kind of file:

    pytest tests/readers -m fuzz --fuzz-seconds 60 --fuzz-seed 7
"""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from tests.readers.mutations import mutated
from tests.readers.subjects import SUBJECTS, Subject

from opmark.core.errors import OpMarkError

LIMIT_S = 30

pytestmark = pytest.mark.fuzz


@pytest.mark.timeout(0)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_mutated_file_is_read_or_refused(subject: Subject, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = subject.make(tmp_path)
    content = path.read_bytes()
    seconds, seed = (request.config.getoption(f"--fuzz-{name}") for name in ("seconds", "seed"))
    begun = time.monotonic()
    case = 0
    while time.monotonic() - begun < seconds if seconds else case < subject.cases:
        name = f"{subject.name} {seed} {case}"
        path.write_bytes(mutated(random.Random(name), path.name, content))
        try:
            with _at_most(LIMIT_S):
                sentence = repr(subject.read(path))[:1]
        except OpMarkError as error:
            sentence = str(error)
        except Exception as error:
            kept = Path(f"{tmp_path}-{case}{path.suffix}")
            kept.write_bytes(path.read_bytes())
            raise AssertionError(f"case {name!r}, kept in {kept}: {type(error).__name__}: {error}") from error
        assert 0 < len(sentence) < 20_000, f"case {name!r}"
        sentence.encode()
        case += 1


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` where reading does not end."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
