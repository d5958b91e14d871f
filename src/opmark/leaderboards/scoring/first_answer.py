"""Answers without compiled code: loading it takes longer than a quick placer, and making it takes a minute.

Plain Python gives the same costs, only later. A placer that ends well within its budget has therefore given its answer;
any other one runs again, compiled.
"""

import os
import sys
import time
from collections.abc import Callable

from opmark.core.errors import OpMarkError
from opmark.core.units import format_ns
from opmark.leaderboards.problem.compile_cache import UNCOMPILED_VARIABLE, runs_uncompiled
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import format_cost
from opmark.leaderboards.scoring.attempt import Attempt
from opmark.leaderboards.scoring.placer_process import PlacerProcess
from opmark.leaderboards.search.compilation import compile_in_background, is_compiled
from opmark.leaderboards.search.placer import PLACERS, Placer

# In larger problems plain Python takes longer than compiling.
UNITS_AT_MOST = 1_000
# The placer of the first answer, and the share of its budget within which a placer was not held up by plain Python.
FIRST, UNHURRIED = "heft", 0.1
FIRST_BUDGET_S = 2.0


def without_compiling(problem: Problem, say: Callable[[str], None], *, simulations: int = 1) -> bool:
    """True if this process runs in plain Python, because its `simulations` of the problem are little work.

    Call it before anything else is done with the problem.
    """
    if runs_uncompiled():
        return True
    if "numba" in sys.modules:
        return False
    if len(problem.units) * simulations > UNITS_AT_MOST:
        if not is_compiled():
            say("compiling the simulator: once per version, a minute at most where the processor is idle")
        return False
    os.environ[UNCOMPILED_VARIABLE] = "1"
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
    if len(problem.units) <= UNITS_AT_MOST:
        compile_meanwhile(say)
    ready = is_compiled()
    if not without_compiling(problem, say) or (ready and _compiles(name)):
        with PlacerProcess(say=say) as process:
            return process.attempt(problem, name, budget_s=budget_s, seed=seed)
    begun, unhurried_s = time.monotonic(), UNHURRIED * budget_s
    found: Attempt | None = None
    with PlacerProcess(compiled=False) as process:
        if name != FIRST and not ready:
            _say_first(process, problem, seed, say)
            begun = time.monotonic()
        try:
            found = process.attempt(
                problem, name, budget_s=budget_s, seed=seed, within_s=unhurried_s if ready else None
            )
        except OpMarkError:
            if time.monotonic() - begun < unhurried_s:
                raise
    if found is not None:
        if found.planning_s < unhurried_s:
            return found
        cost = format_cost(found.evaluation.schedule.value, problem.unit)
        if not ready:
            say(f"{name} found {cost} in plain Python; it runs again once it is compiled (Ctrl-C keeps this answer)")
    try:
        with PlacerProcess(say=say) as process:
            return process.attempt(problem, name, budget_s=budget_s, seed=seed)
    except KeyboardInterrupt:
        if found is None:
            raise
        say("interrupted: this is the answer of plain Python")
        return found


def _compiles(name: str) -> bool:
    """True for a placer whose own loops are compiled; most others are quick."""
    return type(PLACERS.load(name)).prepare is not Placer.prepare


def _say_first(process: PlacerProcess, problem: Problem, seed: int, say: Callable[[str], None]) -> None:
    begun = time.monotonic()
    try:
        first = process.attempt(problem, FIRST, budget_s=FIRST_BUDGET_S, seed=seed)
    except OpMarkError:
        return  # the placer that was asked for may find one
    cost = format_cost(first.evaluation.schedule.value, problem.unit)
    say(f"first answer after {format_ns((time.monotonic() - begun) * 1e9)}: {cost} ({FIRST})")
