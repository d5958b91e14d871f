"""The worker process of OpMark's own placers: it reads problems and writes answers, as JSON lines.

    python -m opmark.leaderboards.scoring.placer_worker

The parent process keeps the time and ends the worker.
"""

import json
import os
import sys
import threading
import time
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import MissingExtraError, OpMarkError, PlacementError
from opmark.core.reading import parse_json
from opmark.core.schema import convert
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import plan, prepare
from opmark.leaderboards.search.anytime import listening
from opmark.leaderboards.search.compilation import compile_once

PARENT_LOOKED_AT_EVERY_S = 2.0


def compile_simulator(problem: Problem) -> None:
    """Compile the numba functions that a problem's rules and the placers need, outside of the planning time."""
    from opmark.leaderboards.search.annealing import warm_up
    from opmark.leaderboards.search.single import best_single_device

    compile_once()
    problem.arrays  # noqa: B018 (computed once, kept by the problem)
    try:
        best_single_device(problem)
        warm_up()
    except PlacementError:
        return  # every placement fails, and the placer will report it


def main() -> int:
    """Answer until the input ends."""
    # Output that a placer prints must not be read as an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    problem: Problem | None = None
    for line in sys.stdin.buffer:
        asked: dict[str, Any] = parse_json(line, "a request", written_by_us=True)
        if asked["problem"] is not None:
            problem = convert(asked["problem"], Problem, where="problem")
        assert problem is not None
        compile_simulator(problem)
        prepare(asked["placer"])
        _say(answers, {"started": True})

        def heard(solution: Solution) -> None:
            _say(answers, {"offer": plain(solution)})

        try:
            with listening(heard):
                solution, seconds = plan(problem, asked["placer"], budget_s=asked["budget_s"], seed=asked["seed"])
        except MissingExtraError as error:
            _say(answers, {"unavailable": error.message, "hint": error.hint})
        except OpMarkError as error:
            _say(answers, {"failed": error.message})
        else:
            _say(answers, {"offer": plain(solution)})
            _say(answers, {"done": seconds})
    return 0


def _say(answers: Any, message: dict[str, object]) -> None:
    answers.write(json.dumps(message, separators=(",", ":")) + "\n")
    answers.flush()


def _end_with(parent: int) -> None:
    """End when the parent process is gone, even in the middle of planning."""
    while os.getppid() == parent:
        time.sleep(PARENT_LOOKED_AT_EVERY_S)
    os._exit(0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the parent was killed: nobody hears an answer
        os._exit(0)
