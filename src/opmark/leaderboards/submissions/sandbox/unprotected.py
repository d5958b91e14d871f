"""No sandbox: limits on resources only, for what you wrote yourself."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from opmark.leaderboards.submissions.sandbox.bubblewrap import Confined
from opmark.leaderboards.submissions.sandbox.limits import Limits, pinned
from opmark.leaderboards.submissions.sandbox.runtime import COMPILED, FOLDER, PRIVATE, SCRATCH, compiled_code


class Unprotected:
    """Runs a program with your own rights; it can read and change whatever you can."""

    name = "none"

    def layers(self, limits: Limits) -> tuple[str, ...]:
        """What holds a run back, for its record."""
        return (
            "no sandbox: the run was trusted",
            f"limits: {limits.memory_bytes >> 20} MiB memory, {limits.output_bytes >> 20} MiB output, processor time",
            "wall clock",
        )

    @contextlib.contextmanager
    def confined(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        limits: Limits,
        environment: dict[str, str],
        processor: int | None = None,
    ) -> Iterator[Confined]:
        """`command`, run in `folder` with a temporary folder of its own."""
        with tempfile.TemporaryDirectory(prefix="opmark-run-") as scratch:
            here = {FOLDER: str(folder.resolve())}
            words = [_moved(word, here) for word in command]
            private = {SCRATCH: scratch, COMPILED: str(compiled_code())}
            moved = {name: _moved(value, private) if name in PRIVATE else value for name, value in environment.items()}
            kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
            start = (*pinned(processor), *limits.prefix(), *words)
            yield Confined(command=start, environment={**kept, **moved}, folder=folder)


def _moved(word: str, inside: dict[str, str]) -> str:
    """A path of the sandbox as the path that stands for it outside."""
    for path, real in inside.items():
        if word == path or word.startswith(f"{path}/"):
            return real + word[len(path) :]
    return word
