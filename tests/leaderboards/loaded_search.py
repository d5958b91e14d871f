"""Importing this module loads the search where it is compiled: every process forked from this one has it."""

from opmark.leaderboards.problem.problem import smallest_problem
from opmark.leaderboards.scoring.attempt import prepare
from opmark.leaderboards.scoring.placer_worker import compile_simulator
from opmark.leaderboards.search.compilation import is_compiled

if is_compiled():
    compile_simulator(smallest_problem())
    prepare("opmark")
