"""Before anything is compiled, plain Python gives the same answer within seconds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.leaderboards.problem.compile_cache import VARIABLE
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.scoring.attempt import attempt

ASK = """
import sys
from pathlib import Path
from opmark.leaderboards.problem.files import load_problem
from opmark.leaderboards.scoring import first_answer
first_answer.compile_in_background = lambda: None
found = first_answer.attempt_at_once(
    load_problem(Path(sys.argv[1])), sys.argv[2], budget_s=60, seed=3, say=lambda line: print(line, file=sys.stderr)
)
print(found.evaluation.cost, *found.evaluation.placement.device)
"""


@pytest.mark.parametrize(
    ("name", "problem"),
    [("heft", heft_canonical()), ("pipedream", heft_canonical()), ("opmark", smallest_problem())],
    ids=["heft", "pipedream", "opmark"],
)
def test_plain_python_gives_the_compiled_answer(name: str, problem: Problem, tmp_path: Path) -> None:
    save_problem(problem, tmp_path / "problem.json")
    empty = {**os.environ, VARIABLE: str(tmp_path / "nothing")}
    command = [sys.executable, "-c", ASK, str(tmp_path / "problem.json"), name]
    told = subprocess.run(command, env=empty, capture_output=True, text=True, check=True)
    compiled = attempt(problem, name, budget_s=60, seed=3).evaluation
    assert told.stdout.split() == [str(compiled.cost), *map(str, compiled.placement.device)]
    assert "in the background" in told.stderr
    assert "Warning" not in told.stderr
    assert ("first answer after" in told.stderr) == (name != "heft")
    assert not list((tmp_path / "nothing").rglob("*.nbc"))
