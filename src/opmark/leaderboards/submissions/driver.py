"""Call `place(problem, budget)` of a `placer.py`, inside the sandbox.

    python -P -m opmark.leaderboards.submissions.driver FOLDER SECONDS

The clock starts before the first line of the submission's code runs. `place` returns a solution, or yields several, one
after another. Its own output goes to standard error.
"""

import contextlib
import importlib
import importlib.util
import math
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from opmark.core.errors import ContentError
from opmark.core.reading import parse_json
from opmark.core.schema import convert
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.submissions.budget import Budget, as_solution
from opmark.leaderboards.submissions.manifest import PYTHON_FILE
from opmark.leaderboards.submissions.protocol import answer_line
from opmark.leaderboards.submissions.sandbox.runtime import COMPILED_VARIABLE

READY = b'{"ready": true}\n'


def main(folder: str, seconds_at_most: float) -> int:
    """Report that the clock can start, load the placer, read the problem, and write its answers.

    From then on the process may use `seconds_at_most` seconds of processor time.
    """
    # Standard output is kept for answers: output of the placer must not be read as one.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    _take_compiled_code()
    importlib.import_module("opmark.leaderboards.simulator.engine")  # takes seconds, which must not count as planning
    with contextlib.suppress(ContentError):
        convert({}, Problem, where="problem")  # the first conversion prepares all others
    _limit_processor_time(seconds_at_most)
    _write(answers.fileno(), READY)
    begun = time.monotonic()
    module = _load(Path(folder))
    # The runner wrote this line, from a problem that it had checked: the quick reader suffices.
    content = parse_json(sys.stdin.buffer.readline(), "the problem", written_by_us=True)
    seconds, seed = float(os.environ["OPMARK_BUDGET_S"]), int(os.environ["OPMARK_SEED"])

    def send(solution: Solution) -> None:
        _write(answers.fileno(), answer_line(solution))

    budget = Budget(seconds=seconds, seed=seed, send=send, begun=begun)
    content.pop("schema")
    found = module.place(convert(content, Problem, where="problem"), budget)
    if isinstance(found, Iterator):
        for answer in found:
            send(as_solution(answer))
    elif found is not None:
        send(as_solution(found))
    return 0


def _limit_processor_time(seconds: float) -> None:
    """Lower the limit, which so far has to allow for importing OpMark; it cannot be raised again."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(own.ru_utime + own.ru_stime + seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _load(folder: Path) -> ModuleType:
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("placer", folder / PYTHON_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["placer"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "place", None)):
        raise SystemExit(f"{PYTHON_FILE} defines no function place(problem, budget)")
    return module


def _take_compiled_code() -> None:
    """Copy OpMark's compiled numba functions into numba's cache folder, so that no budget pays for compiling them."""
    source, target = os.environ.get(COMPILED_VARIABLE), os.environ.get("NUMBA_CACHE_DIR")
    if not source or not target or not Path(source).is_dir():
        return
    with contextlib.suppress(OSError):
        for folder in Path(source).iterdir():
            shutil.copytree(folder, Path(target) / folder.name, ignore=_not_compiled)


def _not_compiled(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith((".nbi", ".nbc"))]


def _write(descriptor: int, line: bytes) -> None:
    """Write the whole line, even where the pipe takes only pieces."""
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]


if __name__ == "__main__":
    status = main(sys.argv[1], float(sys.argv[2]))
    sys.stderr.flush()
    os._exit(status)  # all answers are written, and shutting down an interpreter takes a while
