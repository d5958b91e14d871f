"""The JSON Schemas in the reference accept what OpMark itself ships and writes."""

import json
from functools import cache
from itertools import islice
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
# Of mappings and lists with an entry per unit, so many are looked at.
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


def shortened(value: Any) -> Any:
    """Content with the first entries of long mappings and lists, all entries of which are alike."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in islice(value.items(), ENTRIES)}
    return [shortened(item) for item in value[:ENTRIES]] if isinstance(value, list) else value


def test_stored_answers_follow_the_schema_of_a_solution() -> None:
    validator = validator_of("solution")
    for name in track_names(ROOT / "leaderboards"):
        for entry, answers in load_track(ROOT / "leaderboards", name).solutions().items():
            for problem, answer in answers.items():
                assert isinstance(answer, Solution), f"{name}: {entry}: {problem}: {answer}"
                content = shortened({"schema": 1, **plain(answer)})
                assert not list(validator.iter_errors(content)), f"{name}: {entry}: {problem}"


def test_an_unknown_key_does_not() -> None:
    content = read_yaml(FILES["suite"][0]) | {"budgett": "3m"}
    with pytest.raises(jsonschema.ValidationError):
        validator_of("suite").validate(content)
