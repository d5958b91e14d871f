"""The JSON Schemas in the reference accept what OpMark itself ships and writes."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema.protocols import Validator

from opmark.core.canonical import plain
from opmark.core.reading import read_json
from opmark.core.yaml_file import read_yaml
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.track import load_track, track_names

ROOT = Path(__file__).resolve().parents[2]
# Longer mappings and lists have an entry per unit: of entries alike, one is looked at.
ENTRIES = 40
FILES = {
    "suite": sorted((ROOT / "bench" / "suites").glob("*.yaml")),
    "track": sorted((ROOT / "leaderboards").glob("*/track.yaml")),
    "problem": sorted((ROOT / "leaderboards").glob("*/problems/*.json.gz")),
}


@cache
def validator_of(name: str) -> Validator:
    """The checked schema of a kind of file; checking it takes as long as many files."""
    schema = json.loads((ROOT / "docs" / "reference" / f"{name}.schema.json").read_text())
    chosen = jsonschema.validators.validator_for(schema)
    chosen.check_schema(schema)
    return chosen(schema)


@pytest.mark.parametrize("name", FILES)
def test_what_is_shipped_follows_its_schema(name: str) -> None:
    validator = validator_of(name)
    assert FILES[name]
    for path in FILES[name]:
        validator.validate(read_yaml(path) if path.suffix == ".yaml" else read_json(path))


def form(value: Any) -> Any:
    """What a schema can tell values apart by: type, sign, emptiness, keys, and the same of all entries."""
    if isinstance(value, dict):
        return "mapping", frozenset(value) if len(value) <= ENTRIES else None, frozenset(map(form, value.values()))
    if isinstance(value, list):
        return "list", frozenset(map(form, value))
    return type(value), value < 0 if isinstance(value, int | float) else not value, not value


def one_of_each(value: Any) -> Any:
    """Content in which long mappings and lists have one entry of each form."""
    if isinstance(value, dict):
        alike = {form(item): (key, item) for key, item in value.items()}
        kept = value.items() if len(value) <= ENTRIES else alike.values()
        return {key: one_of_each(item) for key, item in kept}
    if isinstance(value, list):
        found = value if len(value) <= ENTRIES else {form(item): item for item in value}.values()
        return [one_of_each(item) for item in found]
    return value


def test_an_entry_unlike_the_others_is_looked_at() -> None:
    alike = {f"unit{number}": "P1" for number in range(1000)}
    assert len(one_of_each({"device": alike})["device"]) == 1
    assert 7 in one_of_each({"device": alike | {"odd": 7}})["device"].values()
    assert one_of_each([[1]] * 100 + [[-1]]) == [[1], [-1]]
    wrong = {"schema": 1, "device": alike | {"odd": 7}}
    assert list(validator_of("solution").iter_errors(one_of_each(wrong)))


def test_stored_answers_follow_the_schema_of_a_solution() -> None:
    validator = validator_of("solution")
    for name in track_names(ROOT / "leaderboards"):
        for entry, answers in load_track(ROOT / "leaderboards", name).solutions().items():
            for problem, answer in answers.items():
                assert isinstance(answer, Solution), f"{name}: {entry}: {problem}: {answer}"
                content = one_of_each({"schema": 1, **plain(answer)})
                assert not list(validator.iter_errors(content)), f"{name}: {entry}: {problem}"


def test_an_unknown_key_does_not() -> None:
    content = read_yaml(FILES["suite"][0]) | {"budgett": "3m"}
    with pytest.raises(jsonschema.ValidationError):
        validator_of("suite").validate(content)
