"""Stored answers: small, read back unchanged, and never taken for another problem's."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.core.errors import ContentError
from opmark.core.files import write_text
from opmark.core.reading import read_text
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.answers import WIDTH, read_rows, row_of, row_text, solution_in, write_rows

PROBLEM = heft_canonical()
NAMES = [unit.name for unit in PROBLEM.units]
DEVICE = {name: ("P1", "P3")[place % 2] for place, name in enumerate(NAMES)}
ON_P1, ON_P3 = tuple(NAMES[::2]), tuple(NAMES[1::2])


@pytest.mark.parametrize(
    "solution",
    [
        Solution(device=DEVICE),
        Solution(device=DEVICE, priority={name: 2**60 - place for place, name in enumerate(NAMES)}),
        Solution(device=DEVICE, order={"P3": tuple(reversed(ON_P3)), "P1": ON_P1, "P2": ()}),
        Solution(device=DEVICE, replicas={"P1": ("P2",)}),
        Solution(device={"T1": "P1"}),
        Solution(device=DEVICE, priority={"T1": 3}),
        Solution(device=DEVICE, order={"P1": ("nobody",)}),
        Solution(device={}),
    ],
)
def test_what_is_kept_is_read_back(solution: Solution, tmp_path: Path) -> None:
    path = tmp_path / "entry.json.gz"
    write_rows(path, {"canonical": row_of(solution, PROBLEM), "another": row_of(solution, None)})
    rows = read_rows(path)
    kept = replace(solution, problem="canonical", placer="entry")
    assert solution_in(rows["canonical"], PROBLEM, entry="entry") == kept
    assert solution_in(rows["another"], PROBLEM, entry="entry") == kept
    before = path.read_bytes()
    write_rows(path, dict(reversed(rows.items())))
    assert path.read_bytes() == before, "the same answers, the same bytes"


def test_a_row_is_not_taken_for_another_problem() -> None:
    row = row_of(Solution(device=DEVICE), PROBLEM)
    other = replace(PROBLEM, units=(*PROBLEM.units[1:], PROBLEM.units[0]))
    assert solution_in(row, other) == "its stored answer is for another version of this problem"
    dearer = replace(PROBLEM, units=(replace(PROBLEM.units[0], exec_ns={"P1": 99, "P2": 1}), *PROBLEM.units[1:]))
    assert isinstance(solution_in(row, dearer), Solution), "costs decide what it is worth, not whose it is"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"device": [9] * 10}, "refers to units or devices"),
        ({"device": [-1] * 10}, "refers to units or devices"),
        ({"device": [0]}, "refers to units or devices"),
        ({"priority": [0]}, "refers to units or devices"),
        ({"order": {"P1": [99]}}, "refers to units or devices"),
        ({"device": "P1"}, "device: "),
        ({"colour": 1}, "colour: unknown key"),
    ],
)
def test_a_damaged_row_is_a_sentence(change: dict[str, object], sentence: str) -> None:
    found = solution_in({**row_of(Solution(device=DEVICE), PROBLEM), **change}, PROBLEM)
    assert isinstance(found, str)
    assert sentence in found
    assert solution_in([], PROBLEM) == "its stored answer is not a mapping"


def test_a_damaged_file_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "entry.json.gz"
    assert read_rows(path) == {}
    write_text(path, "[]")
    with pytest.raises(ContentError, match="expected a mapping at the top"):
        read_rows(path)
    path.write_bytes(b"\x1f\x8b cut")
    with pytest.raises(ContentError, match="not a complete gzip file") as caught:
        read_rows(path)
    assert caught.value.where == str(path)


def test_rows_are_lines(tmp_path: Path) -> None:
    rows = [{"name": f"n{number}", "values": list(range(5))} for number in range(40)]
    text = row_text({"schema": 1, "numbers": list(range(WIDTH)), "rows": rows})
    assert len(text.splitlines()) == len(rows) + len(["{", "schema", "numbers", "rows", "]", "}"])
    write_text(tmp_path / "a.json.gz", text)
    assert read_text(tmp_path / "a.json.gz") == text
