"""Runs of submissions: the last valid answer counts, and a failure is one sentence."""

from pathlib import Path

import pytest
from tests.leaderboards.submissions.folders import PROBLEM, make, on, program, runner
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.core.errors import SubmissionError
from opmark.leaderboards.submissions import driver
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.pack import pack, unpacked
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox.limits import Limits


def test_a_command_in_any_language(tmp_path: Path) -> None:
    folder = make(tmp_path / "s", command=["./run.sh"])
    (folder / "run.sh").write_text(f"#!/bin/sh\nread -r problem\necho '{on('P1')}'\necho '{on('P2')}'\n")
    (folder / "run.sh").chmod(0o755)
    with unpacked(pack(load_submission(folder))) as submission:
        entry = SubmissionRunner(submission=submission, sandbox=real_sandbox())
        found = entry.attempt(PROBLEM, budget_s=10)
    assert set(found.solution.device.values()) == {"P2"}
    assert (found.solution.placer, found.solution.problem) == ("mine", "canonical")


@pytest.mark.parametrize(
    ("code", "device"),
    [
        (f"print('''{on('P1')}'''); print('garbage'); print('[[[['); print('null')", "P1"),
        (f"print('''{on('P1')}'''); print('''{on('nowhere')}''')", "P1"),
        (f"print('''{on('P1')}'''); sys.stdout.write('''{on('P2')[:-9]}''')", "P1"),
        (f"sys.stdout.write('''{on('P1')}''')", "P1"),
        (f"print(json.dumps(json.loads('''{on('P3')}'''), indent=1))", "P3"),
        (f"print('''{on('P1')}''', flush=True); os._exit(7)", "P1"),
        (f"print('''{on('P1')}''', flush=True); time.sleep(1.6); print('''{on('P3')}'''); time.sleep(60)", "P1"),
        (f"print('''{on('P2', problem='canonical')}'''); print('''{on('P1', problem='another')}''')", "P2"),
        (f"print('''{on('P1')}'''); print('''{on('P2')[:-1]}, \"priority\": NaN}}''')", "P1"),
    ],
    ids=["garbage", "invalid", "half", "no newline", "indented", "crash", "late", "another problem", "NaN"],
)
def test_the_last_complete_valid_solution_counts(tmp_path: Path, code: str, device: str) -> None:
    found = runner(program(tmp_path / "s", code)).attempt(PROBLEM, budget_s=0.1)
    assert set(found.solution.device.values()) == {device}


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("", "'mine' printed no solution"),
        ("print('hello')", "gave a last answer that is not valid: not JSON: hello"),
        ("print('[' * 100000)", "is longer than any solution|not JSON"),
        ("sys.exit('no idea')", r"'mine' ended with code 1 and printed no solution \(no idea\)"),
        ("time.sleep(60)", r"was ended 1.11 s after it got the problem and printed no solution"),
        ("while True: print('x' * 65536)", "was ended for printing more than 1 MiB"),
        (f"print('''{on('P1', problem='another')}''')", "it is a solution of 'another', not of 'canonical'"),
        (f"print('''{on('P1', cost=1)}''')", "cost: unknown key"),
        ("print(json.dumps({'device': {'T1': 'P1'}}))", "9 of 10 units have no device"),
        ("print(json.dumps({'device': 3}))", "device: "),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, code: str, sentence: str) -> None:
    entry = runner(program(tmp_path / "s", code), Limits(output_bytes=2**20))
    with pytest.raises(SubmissionError, match=sentence):
        entry.attempt(PROBLEM, budget_s=0.1)


def test_a_placer_without_place_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"printed no solution \(placer.py defines no function place"):
        runner(make(tmp_path / "s", "x = 1")).attempt(PROBLEM, budget_s=0.1)
    assert driver.READY.endswith(b"\n")
