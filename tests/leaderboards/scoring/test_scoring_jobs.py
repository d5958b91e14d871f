"""Scoring jobs: any number gives the same bytes, and an interrupted run continues."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical
from tests.leaderboards.forked_placers import address, fork_placers

from opmark.core.canonical import plain
from opmark.core.errors import MissingExtraError, SubmissionError
from opmark.core.files import json_text
from opmark.core.parallel.dask_map import OnDask
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import Attempt, attempt
from opmark.leaderboards.scoring.run_record import FILE
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress, score_entries, score_track
from opmark.leaderboards.scoring.track import Track, freeze_track, load_track


def track_in(folder: Path) -> Track:
    (folder / "t").mkdir(parents=True)
    # The searches below end after a number of evaluations: however busy the machine is, no budget cuts them short.
    (folder / "t" / "track.yaml").write_text("schema: 1\ntitle: T\nversion: 1.0.0\nbudget_s: 600\n")
    for name, problem in (("a", heft_canonical()), ("b", peft_canonical())):
        save_problem(replace(problem, name=name), folder / "t" / "problems" / f"{name}.json")
    return load_track(folder, "t")


NAMES = ("cpop", "heft", "local-search", "random")
UNTIMED = ("cpop", "heft", "random")


def stored(track: Track) -> dict[str, bytes]:
    """Every file of a track; of the records of runs all but the two measured times, which no two runs share."""
    paths = [path for path in track.folder.rglob("*") if path.is_file()]
    found = {str(path.relative_to(track.folder)): path.read_bytes() for path in paths}
    timeless = {
        entry: {problem: replace(run, planning_s=None, answered_s=None) for problem, run in row.items()}
        for entry, row in track.runs().items()
    }
    return {**found, FILE: json_text(timeless).encode()} if FILE in found else found


def test_any_number_of_jobs_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = track_in(tmp_path / "one"), track_in(tmp_path / "two")
    steps: list[ScoringProgress] = []
    score_track(one, NAMES, jobs=1)
    score_track(two, tuple(reversed(NAMES)), jobs=2, progress=steps.append)
    assert stored(one) == stored(two)
    answers = [name for name in stored(one) if name.startswith("solutions/")]
    assert len(answers) == len(NAMES)
    assert set(stored(one)) - set(answers) >= {"standings.json", FILE, "problems/a.json"}
    assert all(run.planning_s is not None for row in one.runs().values() for run in row.values())
    assert [step.done for step in steps] == list(range(9))
    assert steps[0].left_s is None
    assert steps[-1].left_s == 0


class Counting:
    """Counts its runs, and is ended after a number of them."""

    def __init__(self, most: int) -> None:
        self.most, self.ran = most, 0

    def attempt(self, problem: Problem, name: str, *, budget_s: float, seed: int = 0) -> Attempt:
        if self.ran == self.most:
            raise KeyboardInterrupt
        self.ran += 1
        if name == "bad":
            raise SubmissionError("it failed", where=problem.name)
        return attempt(problem, name, budget_s=budget_s, seed=seed)


def test_a_run_that_was_ended_goes_on_where_it_stopped(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    codes = dict.fromkeys(("bad", "heft", "random"), "1")
    first = Counting(4)
    with pytest.raises(KeyboardInterrupt):
        score_entries(track, codes, [first])
    assert sum(len(row) for row in track.runs().values()) == 4, "nothing that was scored is lost"
    second, third, changed, again = (Counting(100) for _ in range(4))
    score_entries(track, codes, [second])
    assert second.ran == 2
    score_entries(track, codes, [third])
    assert third.ran == 0
    score_entries(track, {**codes, "heft": "2"}, [changed])
    assert changed.ran == 2, "other code"
    score_entries(track, codes, [again], again=True)
    assert again.ran == 6
    assert track.runs()["bad"]["a"].reason == "it failed"
    standings = track.standings()
    bad = next(row for row in standings.rows if row.name == "bad").results[0]
    assert (bad.reason, standings.reason("bad", bad)) == ("no solution was submitted", "it failed")
    assert "it failed" not in json.dumps(plain(standings.file())), "what is stored follows from solutions alone"
    assert set(track.runs()["heft"]) == {"a", "b"}


def test_a_failed_run_removes_the_older_answer(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    track.store("bad", "a", Solution(device={}))
    score_entries(track, {"bad": "1"}, [Counting(9)])
    assert not track.has_answer("bad", "a")


def test_a_cluster_gives_the_same_bytes_although_a_worker_is_killed(tmp_path: Path, forked_cluster: None) -> None:
    here, there = track_in(tmp_path / "here"), track_in(tmp_path / "there")
    score_track(here, UNTIMED, jobs=1)
    steps: list[ScoringProgress] = []
    with OnDask("local:2") as cluster:
        cluster.client.run(fork_placers, address())
        processes = list(cluster.client.run(os.getpid).values())

        def kill_one(step: ScoringProgress) -> None:
            steps.append(step)
            if step.done == 2:
                os.kill(processes[0], signal.SIGKILL)

        score_track(there, UNTIMED, cluster=cluster, progress=kill_one)
        assert processes[0] not in cluster.client.run(os.getpid).values()
        assert stored(there) == stored(here)
        assert [(step.done, step.total) for step in steps] == [(done, 6) for done in range(7)]
        assert steps[-1].left_s == 0
        steps.clear()
        score_track(there, UNTIMED, cluster=cluster, progress=steps.append)
        assert [(step.total, step.kept) for step in steps] == [(0, 6)], "a finished run is not repeated"
        assert freeze_track(there, place=cluster) == freeze_track(here)
        assert stored(there) == stored(here)


class Lacking(Counting):
    """Lacks a package for the entry `solver`."""

    def attempt(self, problem: Problem, name: str, *, budget_s: float, seed: int = 0) -> Attempt:
        if name == "solver":
            raise MissingExtraError("solver needs a package", hint="pip install it")
        return super().attempt(problem, name, budget_s=budget_s, seed=seed)


def test_a_missing_package_is_no_result_and_is_not_remembered(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    codes = {"heft": "1", "solver": "1"}
    assert score_entries(track, codes, [Lacking(99)]) == {"solver": "solver needs a package: pip install it"}
    assert set(track.runs()) == {"heft"}
    assert [row.name for row in track.standings().rows] == ["heft"], "no row, no rank"
    track.store("solver", "a", attempt(heft_canonical(), "heft", budget_s=1).solution)
    track.rank()
    before = stored(track)
    assert score_entries(track, codes, [Lacking(99)]).keys() == {"solver"}
    assert stored(track) == before, "what was stored where the package is there stays"


def test_a_worker_without_a_package_says_not_run(tmp_path: Path) -> None:
    """As `leaderboards score` where OR-tools is not installed: the import fails in the placer's own process."""
    from click.testing import CliRunner

    from opmark.cli.main import cli

    (tmp_path / "ortools").mkdir()
    (tmp_path / "ortools" / "__init__.py").write_text("raise ImportError('not here')")
    for room in ("bench", "datasets", "predictors"):
        (tmp_path / "w" / room).mkdir(parents=True)
    track_in(tmp_path / "w" / "leaderboards")
    words = ["--workspace", str(tmp_path / "w"), "leaderboards", "score", "--track", "t"]
    chosen = ["--placer", "cp-sat", "--placer", "heft"]
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    for _ in range(2):
        found = CliRunner().invoke(cli, [*words, *chosen], env={"PYTHONPATH": path})
        assert found.exit_code == 0, found.output
        assert "cp-sat was not run: cp-sat needs OR-tools: pip install 'opmark[solvers]'" in found.stderr
        row = next(line for line in found.stdout.splitlines() if "cp-sat" in line)
        assert "not run" in row
        assert "0.010" not in row
    document = json.loads(CliRunner().invoke(cli, [*words, *chosen, "--json"], env={"PYTHONPATH": path}).stdout)
    assert [(entry["rank"], entry["name"]) for entry in document] == [(1, "heft"), (None, "cp-sat")]
    assert "cp-sat" not in (tmp_path / "w" / "leaderboards" / "t" / "standings.json").read_text()


def test_placers_whose_turn_comes_too_late_are_not_run_and_run_later(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    score_track(track, ["heft"])
    found = score_track(track, ["heft", "random"], until=0.0)
    assert found.not_run == {"random": "its turn came when the time was over"}
    assert [row.name for row in found.rows] == ["heft"]
    assert "random" not in track.runs()
    assert score_track(track, ["heft", "random"]).not_run == {}
    assert "random" in track.runs()
