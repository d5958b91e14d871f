"""Run records: written and read back, and old formats ignored."""

from pathlib import Path

from opmark.leaderboards.scoring.run_record import RunRecord, code_of_placer, read_runs, without_origin, write_runs
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    assert read_runs(path) == {}
    record = RunRecord(problem="p", code=code_of_placer("heft"), budget_s=2, seed=1, planning_s=0.5, layers=("x",))
    write_runs(path, {"heft": {"a": record}})
    assert read_runs(path) == {"heft": {"a": record}}
    path.write_text('{"heft": {"a": 0.5}}')
    assert read_runs(path) == {}
    assert code_of_placer("no-such") == "no-such"
    assert ScoringProgress(done=0, total=1, kept=0).left_s is None


def test_the_origin_of_a_placer_is_no_part_of_its_code() -> None:
    plain = 'class A(Placer):\n    summary = "a"\n\n    def place(self):\n        paper = 1\n'
    paper = '    paper = Placer.cites(\n        "B: C, D",\n        2001,\n    )\n    own = True\n'
    assert without_origin(plain.replace('    summary = "a"\n', f'    summary = "a"\n{paper}')) == plain
    assert without_origin(plain) == plain
