"""The protocol of a submission: it reads a problem and writes solutions, one JSON document per line.

Its output is not trusted: the number and the length of lines are limited, and a solution counts only where it is valid
for the problem that was sent.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, OpMarkError, SubmissionError
from opmark.core.reading import parse_json
from opmark.core.schema import convert
from opmark.leaderboards.problem.fields import CostOrigin
from opmark.leaderboards.problem.files import SCHEMA as PROBLEM_SCHEMA
from opmark.leaderboards.problem.placement import SCHEMA as SOLUTION_SCHEMA
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate

# The number of last lines that are read; a solution followed by more invalid lines is lost.
LINES_AT_MOST = 100
SHOWN_CHARACTERS = 80


def question(problem: Problem) -> bytes:
    """The problem as one line, without its reference and its provenance."""
    asked = replace(problem, reference=None, provenance=CostOrigin())
    text = json.dumps({"schema": PROBLEM_SCHEMA, **plain(asked)}, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def answer_line(solution: Solution) -> bytes:
    """A solution as one line."""
    return json.dumps({"schema": SOLUTION_SCHEMA, **plain(solution)}, separators=(",", ":")).encode() + b"\n"


def last_valid(problem: Problem, output: bytes, *, complete: bool) -> tuple[Solution, Evaluation, int]:
    """The last valid solution of `output`, its evaluation, and the offset of its last byte.

    A last line without its newline counts only where the program ended by itself (`complete`). Raises
    `SubmissionError` with the fault of the last line.
    """
    first: OpMarkError | None = None
    most = line_bytes(problem)
    for line, end in _candidates(output, complete=complete):
        try:
            solution = read_solution(problem, line, most=most)
            return solution, evaluate(problem, solution), end
        except OpMarkError as error:
            first = first or error
    if first is None:
        raise SubmissionError("printed no solution")
    raise SubmissionError(f"gave a last answer that is not valid: {first}")


def read_solution(problem: Problem, line: bytes, *, most: int) -> Solution:
    """Decode `line` as a solution of `problem`. Raises `SubmissionError` or `ContentError`."""
    if len(line) > most:
        raise SubmissionError(f"a line of {len(line)} bytes is longer than any solution of this problem ({most})")
    try:
        said: Any = parse_json(line, "")
    except ContentError as error:
        said = "not JSON" if error.message.startswith("not JSON") else error.message
        raise SubmissionError(f"{said}: {_shown(line)}") from None
    if not isinstance(said, dict):
        raise SubmissionError(f"not a JSON object: {_shown(line)}")
    if said.pop("schema", SOLUTION_SCHEMA) != SOLUTION_SCHEMA:
        raise SubmissionError(f"schema must be {SOLUTION_SCHEMA}")
    try:
        solution = convert(said, Solution, where="solution")
    except ContentError as error:
        raise SubmissionError(f"{error.message[:500]}") from None
    if solution.problem not in {"", problem.name}:
        raise SubmissionError(f"it is a solution of {solution.problem[:80]!r}, not of {problem.name!r}")
    return solution


def line_bytes(problem: Problem) -> int:
    """The limit of a line's length: enough for names, priorities and orders, all spelled with escapes."""
    names = sum(len(unit.name) for unit in problem.units) * 6
    devices = max(len(device.name) for device in problem.cluster.devices) * 6
    return 2**16 + 4 * names + len(problem.units) * (devices + 96)


def _candidates(output: bytes, *, complete: bool) -> Iterator[tuple[bytes, int]]:
    """Lines from last to first with their end offsets, then the whole output as one document of many lines."""
    end = len(output)
    if not complete:
        end = output.rfind(b"\n") + 1
    last, stop = end, end
    for _ in range(LINES_AT_MOST):
        if stop <= 0:
            break
        start = output.rfind(b"\n", 0, stop - 1) + 1
        line = output[start:stop].strip()
        if line:
            yield line, stop
        stop = start
    if complete and output.count(b"\n", 0, last) > 1:
        yield output.strip(), last


def _shown(line: bytes) -> str:
    text = line[: SHOWN_CHARACTERS + 1].decode("utf-8", errors="replace")
    text = "".join(character if character.isprintable() else "�" for character in text)
    return f"{text[:SHOWN_CHARACTERS]}…" if len(text) > SHOWN_CHARACTERS else text
