"""`benchmarks/labels.py` on journals: one sentence where there is nothing to compare."""

import subprocess
import sys
from pathlib import Path

from tests.datasets import sample
from tests.datasets.journals import write_journal

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "labels.py"


def labels(*journals: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *map(str, journals)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_journals_without_anything_to_compare_are_one_sentence(tmp_path: Path) -> None:
    first = write_journal(tmp_path / "first.jsonl", sample.kernels(4)[:2])
    other = write_journal(tmp_path / "other.jsonl", sample.kernels(4)[2:])
    for journals, said in (
        ((first,), f"{first}: no kernel was looked at in four processes"),
        ((first, other), f"{first} and {other} hold no kernel"),
    ):
        found = labels(*journals)
        assert found.returncode == 1
        assert found.stderr.startswith(said)
        assert len(found.stderr.splitlines()) == 1


def test_the_labels_of_a_journal_are_those_of_the_same_one(tmp_path: Path) -> None:
    first = write_journal(tmp_path / "first.jsonl", sample.kernels(4))
    again = write_journal(tmp_path / "again.jsonl", sample.kernels(4))
    found = labels(first, again)
    assert found.returncode == 0, found.stderr
    rows = [line for line in found.stdout.splitlines() if " median " in line]
    assert rows
    assert "bias   +0.0%" in rows[0]
