"""Answers before the search is compiled: OpMark's code runs in plain Python while another process compiles it.

Plain Python gives the same costs, only later. A placer that ends well within its budget has therefore given its answer;
any other one runs again, compiled.
"""

import os
import sys
import time
from collections.abc import Callable

from opmark.core.errors import OpMarkError
from opmark.core.units import format_ns
from opmark.leaderboards.problem.compile_cache import UNCOMPILED_VARIABLE
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import format_cost
from opmark.leaderboards.scoring.attempt import Attempt
from opmark.leaderboards.scoring.compilation import compile_in_background, is_compiled, runs_uncompiled
from opmark.leaderboards.scoring.placer_process import PlacerProcess

# In larger problems plain Python takes longer than compiling.
UNITS_AT_MOST = 1_000
# The placer of the first answer, and the share of its budget within which a placer was not held up by plain Python.
FIRST, UNHURRIED = "heft", 0.1
FIRST_BUDGET_S = 2.0


def without_compiling(problem: Problem, say: Callable[[str], None]) -> bool:
    """True if this process runs in plain Python, because nothing is compiled yet and the problem is small.

    Compiling then begins in the background. Call it before anything else is done with the problem.
    """
    if runs_uncompiled():
        return True
    if "numba" in sys.modules or is_compiled():
        return False
    if len(problem.units) > UNITS_AT_MOST:
        say("compiling the simulator: once per version, a minute at most where the processor is idle")
        return False
    compile_meanwhile(say)
    return True


def compile_meanwhile(say: Callable[[str], None]) -> None:
    """Begin to compile in the background where nothing is compiled yet; this process goes on in plain Python."""
    if runs_uncompiled() or "numba" in sys.modules or is_compiled():
        return
    compile_in_background()
    say("compiling the search in the background, once per version; until then OpMark runs in plain Python")
    os.environ[UNCOMPILED_VARIABLE] = "1"


def attempt_at_once(problem: Problem, name: str, *, budget_s: float, seed: int, say: Callable[[str], None]) -> Attempt:
    """As `PlacerProcess.attempt`. Where nothing is compiled yet, `say` hears a first answer within seconds."""
    if not without_compiling(problem, say):
        with PlacerProcess(say=say) as process:
            return process.attempt(problem, name, budget_s=budget_s, seed=seed)
    with PlacerProcess(compiled=False) as process:
        if name != FIRST:
            _say_first(process, problem, seed, say)
        begun = time.monotonic()
        found: Attempt | None = None
        try:
            found = process.attempt(problem, name, budget_s=budget_s, seed=seed)
        except OpMarkError:
            if time.monotonic() - begun < UNHURRIED * budget_s:
                raise
    if found is not None:
        if found.planning_s < UNHURRIED * budget_s:
            return found
        cost = format_cost(found.evaluation.schedule.value, problem.unit)
        say(f"{name} found {cost} in plain Python; it runs again as soon as it is compiled (Ctrl-C keeps this answer)")
    try:
        with PlacerProcess(say=say) as process:
            return process.attempt(problem, name, budget_s=budget_s, seed=seed)
    except KeyboardInterrupt:
        if found is None:
            raise
        say("interrupted: this is the answer of plain Python")
        return found


def _say_first(process: PlacerProcess, problem: Problem, seed: int, say: Callable[[str], None]) -> None:
    begun = time.monotonic()
    try:
        first = process.attempt(problem, FIRST, budget_s=FIRST_BUDGET_S, seed=seed)
    except OpMarkError:
        return  # the placer that was asked for may find one
    cost = format_cost(first.evaluation.schedule.value, problem.unit)
    say(f"first answer after {format_ns((time.monotonic() - begun) * 1e9)}: {cost} ({FIRST})")
