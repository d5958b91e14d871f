"""Checks of submissions: the template passes, and every fault is named."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.submissions.folders import PROBLEM, on, program
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.core.errors import UsageError
from opmark.core.scaffold import write_extension
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.submissions.check import check, smallest_first
from opmark.leaderboards.submissions.sandbox.choice import Unprotected


def test_the_template_passes_its_check_and_is_ranked(tmp_path: Path) -> None:
    path = write_extension("submission", "first-try", output=tmp_path / "first-try" / "submission.yaml")
    assert sorted(item.name for item in path.parent.iterdir()) == ["README.md", "placer.py", "submission.yaml"]
    steps: list[tuple[int, int, str]] = []
    found = check(path.parent, [(PROBLEM, 20.0)], real_sandbox(), progress=lambda *step: steps.append(step))
    assert [step[:2] for step in steps] == [(0, 3), (0, 3), (1, 3), (2, 3)]
    assert "simulator" in steps[0][2]
    assert [step[2].partition(", ")[0] for step in steps[1:]] == [
        f"running it on {PROBLEM.name}{how}" for how in ("", " a second time", " under other names")
    ]
    assert (found.errors, found.name) == ((), "first-try")
    cost = found.trials[0].cost
    assert cost is not None
    assert 80 <= cost < best_single_device(PROBLEM)[1]
    with pytest.raises(UsageError, match="exists already"):
        write_extension("submission", "first-try", output=path)


def test_a_check_notices_dice_and_memories(tmp_path: Path) -> None:
    dice = program(
        tmp_path / "dice",
        "import random\nd = random.choice(['P1','P2','P3'])\n"
        + (
            "problem = json.loads(sys.stdin.readline())\n"
            "costs = hash('x') % 3\n"
            "print(json.dumps({'device': {u['name']: ['P1','P2','P3'][costs] for u in problem['units']}}))"
        ),
    )
    hashes = {hash_seed: _third(hash_seed) for hash_seed in (0, 1)}
    found = check(dice, [(PROBLEM, 0.5)], Unprotected())
    assert bool(found.errors) == (hashes[0] != hashes[1])
    knows = program(tmp_path / "knows", f"print('''{on('P1')}''')")
    found = check(knows, [(PROBLEM, 0.5)], Unprotected())
    assert found.errors == ()
    assert "an entry must not recognise instances by their names" in found.warnings[0]


def _third(hash_seed: int) -> int:
    import subprocess
    import sys

    command = [sys.executable, "-S", "-c", "print(hash('x') % 3)"]
    environment = {"PYTHONHASHSEED": str(hash_seed)}
    return int(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)


def test_the_smallest_problems_come_first_and_without_answers() -> None:
    from opmark.leaderboards.problem.fields import ReferenceCosts

    large: Problem = replace(PROBLEM, name="z", reference=ReferenceCosts(bound_ns=1, best_known_ns=2))
    small = replace(large, name="a", units=large.units[:1], tensors=())
    assert [(item.name, item.reference) for item in smallest_first([large, small])] == [("a", None), ("z", None)]
