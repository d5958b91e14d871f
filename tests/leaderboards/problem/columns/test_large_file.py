"""Problems read by columns: the same as those read by objects, and nothing wrong gets through."""

import copy
import json
import pickle
import random
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.readers.mutations import RAW, VALUES
from tests.sealing import unsealed

from opmark.core.checksums import with_checksum
from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.schema import load
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.columns.large_file import load_by_columns
from opmark.leaderboards.problem.fields import Arrivals, Tensor, Unit
from opmark.leaderboards.problem.files import SCHEMA, load_problem, save_problem
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import PLACERS
from opmark.leaderboards.simulator.simulate import simulate


def by_columns(path: Path) -> Problem | None:
    return load_by_columns(path, schema=SCHEMA, from_bytes=0)


def by_objects(path: Path) -> Problem:
    return load(path, Problem, schema=SCHEMA, sealed=True)


def sample(units: int = 12) -> Problem:
    """Chains that exchange tensors, with fields of all kinds that columns hold."""
    devices = tuple(Device(name=name, type=kind, memory_bytes=2**30) for name, kind in ("ax", "by", "cy"))
    links = tuple(
        Link(source=a.name, destination=b.name, latency_ns=3, bandwidth_bytes_per_s=1e9)
        for a in devices
        for b in devices
        if a != b
    )
    made = []
    for n in range(units):
        times = {"x": 10 + n, "y": 4.5 + n / 3} if n % 3 else {"y": 7}
        factors = {"y": (0.9, 1.25)} if n % 2 else {}
        weights = ("shared", f"w{n}") if n % 4 else ()
        made.append(
            Unit(
                name=f"ü{n}",
                exec_ns=times,
                weights=weights,
                workspace_bytes=64 * (n % 2),
                kind="conv",
                interval=factors,
                shape_group=f"g{n % 3}",
            )
        )
    tensors = [Tensor(name="in", size_bytes=100, consumers=("ü0", "ü1"))]
    tensors += [
        Tensor(
            name=f"t{n}",
            size_bytes=1000 + n,
            producer=f"ü{n}",
            consumers=tuple(f"ü{m}" for m in (n + 1, n + 3) if m < units),
            output=n == units - 1,
            boundary_ns={"y": 2.5} if n % 2 else {},
        )
        for n in range(units)
    ]
    return Problem(
        name="sample",
        cluster=Cluster(name="three", devices=devices, links=links, host="b"),
        units=tuple(made),
        tensors=tuple(tensors),
        weights={"shared": 4096, **{f"w{n}": 10 * n for n in range(units)}},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "problem.json"
    save_problem(sample(), found)
    return found


def test_columns_give_the_arrays_that_objects_give(path: Path) -> None:
    found, wanted = by_columns(path), by_objects(path)
    assert found is not None
    for field in fields(wanted.arrays):
        mine, theirs = getattr(found.arrays, field.name), getattr(wanted.arrays, field.name)
        assert np.array_equal(mine, theirs), field.name
        assert field.name == "sizes" or (mine.dtype == theirs.dtype and mine.flags.writeable), field.name


def test_objects_are_made_when_they_are_asked_for(path: Path) -> None:
    found = by_columns(path)
    assert found is not None
    checked(found, str(path))
    simulate(found, Placement(device=np.ones(12, dtype=np.int64)))
    solution = PLACERS.load("heft").place(found, budget_s=1, seed=0)
    assert not {"units", "tensors"} & vars(found).keys()
    assert list(solution.device) == [unit.name for unit in sample().units]
    assert found == sample() == by_objects(path)
    assert found.id == sample().id
    assert {"units", "tensors"} <= vars(found).keys()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_whole(path: Path, copied: Callable[[Problem], Problem]) -> None:
    found = by_columns(path)
    assert found is not None
    assert copied(found) == sample()
    changed = replace(found, units=found.units[:1], tensors=())
    assert changed.arrays.units == 1


def test_an_unknown_attribute_is_one(path: Path) -> None:
    found = by_columns(path)
    assert found is not None
    with pytest.raises(AttributeError, match="colour"):
        _ = found.colour  # type: ignore[attr-defined]


@settings(max_examples=60, deadline=None)
@given(examples.problems())
def test_any_problem_is_the_same_or_left_to_objects(tmp_path_factory: pytest.TempPathFactory, problem: Problem) -> None:
    path = tmp_path_factory.mktemp("problem") / "problem.json"
    save_problem(problem, path)
    found = by_columns(path)
    if found is not None:
        arrays = found.arrays
        assert found == problem
        for field in fields(arrays):
            assert np.array_equal(getattr(arrays, field.name), getattr(problem.arrays, field.name)), field.name


def test_large_files_are_read_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    save_problem(sample(300), path)
    assert load_by_columns(path, schema=SCHEMA) is None, "small files are read as fast by objects"
    assert load_by_columns(path, schema=SCHEMA, from_bytes=path.stat().st_size) is not None
    assert load_by_columns(tmp_path / "absent.json", schema=SCHEMA, from_bytes=0) is None
    assert load_by_columns(path, schema=SCHEMA + 1, from_bytes=0) is None


FEATURES = {
    "phase": replace(sample().units[5], phase="update"),
    "colocation": replace(sample().units[5], colocation="tied"),
    "split_ns": replace(sample().units[5], split_ns={"y": (1, 2)}),
    "an unknown type": replace(sample().units[5], exec_ns={"y": 1, "z": 1}),
    "a weight twice": replace(sample().units[5], weights=("w5", "w5")),
    "an escaped character": replace(sample().units[5], kind='"'),
}


@pytest.mark.parametrize("unit", FEATURES.values(), ids=FEATURES.keys())
def test_rare_features_are_left_to_objects(tmp_path: Path, unit: Unit) -> None:
    problem = sample()
    problem = replace(problem, units=(*problem.units[:5], unit, *problem.units[6:]))
    save_problem(problem, tmp_path / "problem.json")
    assert by_columns(tmp_path / "problem.json") is None
    assert load_problem(tmp_path / "problem.json") == problem


def test_requests_need_objects_but_not_at_once(tmp_path: Path) -> None:
    served = replace(sample(), objective="serving", arrivals=(Arrivals(arrival_ns=(0, 5), target_ns=100),))
    save_problem(served, tmp_path / "problem.json")
    found = by_columns(tmp_path / "problem.json")
    assert found is not None
    assert checked(found, "file") == served


# Changes of the text, each of which makes it wrong.
WRONG = {
    "a negative time": ('"y": 7}', '"y": -7}'),
    "a time beyond 2^53": ('"y": 7}', '"y": 9007199254740993}'),
    "an infinite time": ('"y": 7}', '"y": 1e999}'),
    "Infinity": ('"y": 7}', '"y": Infinity}'),
    "NaN": ('"y": 7}', '"y": NaN}'),
    "null": ('"y": 7}', '"y": null}'),
    "no time": ('{"y": 7}', "{}"),
    "a time as text": ('"y": 7}', '"y": "7"}'),
    "true for a time": ('"y": 7}', '"y": true}'),
    "a number for a name": ('"name": "ü4"', '"name": 4'),
    "no name": ('"name": "ü4", ', ""),
    "a name twice": ('"name": "ü4"', '"name": "ü3"'),
    "an unknown key": ('"name": "ü4"', '"name": "ü4", "colour": "red"'),
    "a fraction of a byte": ('"workspace_bytes": 64', '"workspace_bytes": 6.4'),
    "negative bytes": ('"workspace_bytes": 64', '"workspace_bytes": -64'),
    "bytes beyond 2^53": ('"workspace_bytes": 64', '"workspace_bytes": 9007199254740992'),
    "bytes beyond 64 bits": ('"workspace_bytes": 64', '"workspace_bytes": 99999999999999999999'),
    "an unknown weight": ('"weights": ["shared", "w5"]', '"weights": ["shared", "w99"]'),
    "a list in a list": ('"weights": ["shared", "w5"]', '"weights": [["shared"]]'),
    "three factors": ('"interval": {"y": [0.9, 1.25]}', '"interval": {"y": [0.9, 1, 1.25]}'),
    "factors above 1": ('"interval": {"y": [0.9, 1.25]}', '"interval": {"y": [1.1, 1.25]}'),
    "a tensor twice": ('"name": "t4"', '"name": "t3"'),
    "no size": ('"size_bytes": 1004, ', ""),
    "a negative size": ('"size_bytes": 1004', '"size_bytes": -1004'),
    "an unknown producer": ('"producer": "ü4"', '"producer": "u4"'),
    "an unknown reader": ('"consumers": ["ü5", "ü7"]', '"consumers": ["ü5", "u7"]'),
    "a reader twice": ('"consumers": ["ü5", "ü7"]', '"consumers": ["ü5", "ü5"]'),
    "a cycle": ('"consumers": ["ü5", "ü7"]', '"consumers": ["ü5", "ü1"]'),
    "a home": ('"producer": "ü4"', '"producer": "ü4", "home": "a"'),
    "a number for an output": ('"output": true', '"output": 1'),
    "a negative boundary": ('"boundary_ns": {"y": 2.5}', '"boundary_ns": {"y": -2.5}'),
    "a missing comma": ('"shape_group": "g0"},\n', '"shape_group": "g0"}\n'),
    "a negative weight": ('"shared": 4096', '"shared": -1'),
    "a weight beyond 64 bits": ('"shared": 4096', '"shared": 99999999999999999999'),
    "no memory": ('"memory_bytes": 1073741824', '"memory_bytes": 0'),
    "an unknown key at the top": ('"objective"', '"objektive"'),
    "an unknown objective": ('"objective": "latency"', '"objective": "speed"'),
}


@pytest.mark.parametrize(("old", "new"), WRONG.values(), ids=WRONG.keys())
def test_nothing_wrong_gets_through(path: Path, old: str, new: str) -> None:
    text = unsealed(path.read_text())
    assert old in text
    path.write_text(with_checksum(text.replace(old, new, 1)))
    with pytest.raises(ContentError) as refused:
        load_problem(path)
    found = by_columns(path)
    if found is not None:  # rules of the whole problem and cycles are looked at by the same checks
        with pytest.raises(ContentError) as again:
            checked(found, str(path))
        assert str(again.value) == str(refused.value)


def test_other_text_than_ours_is_left_to_objects(path: Path) -> None:
    text = unsealed(path.read_text())
    for changed in (
        text.replace('"kind": "conv"', '"kind": "c\\u006fnv"', 1),
        text.replace("\n", ""),
        text.replace('\n  "units": [\n', '\n  "units": [ \n'),
        text.replace('\n  "tensors": [\n', '\n  "units": [\n  ],\n  "tensors": [\n'),
    ):
        assert changed != text
        path.write_text(with_checksum(changed))
        assert by_columns(path) is None
    path.write_text(text)
    assert by_columns(path) is None, "a file without a checksum may have a key twice"


TOKEN = re.compile(r'-?\d+(?:\.\d+)?|"[^"\n]*"|true|[{}\[\]]')
TEXTS = (
    *(json.dumps(value, ensure_ascii=False) for value in VALUES),
    *RAW,
    "{}",
    "[]",
    '"ü1"',
    '"w1"',
    '"y"',
    "-0",
    "1e2",
)


def damaged(draw: random.Random, text: str) -> str:
    """A text in whose rows one or two values, keys or brackets are others."""
    for _ in range(draw.choice((1, 1, 2))):
        begin, end = text.index('"units": [') + 10, text.rindex('"weights": {')
        tokens = list(TOKEN.finditer(text, begin, end))
        token = draw.choice(tokens)
        like = [other[0] for other in tokens if other[0][0].isdigit() == token[0][0].isdigit()]
        text = text[: token.start()] + draw.choice(like if draw.random() < 0.7 else TEXTS) + text[token.end() :]
    return text


def outcome(problem: Problem) -> Problem | str:
    try:
        _ = checked(problem, "file").arrays
    except ContentError as error:
        return str(error)
    return problem


def test_damaged_rows_are_read_as_objects_are_or_not_at_all(path: Path) -> None:
    text, draw, read = unsealed(path.read_text()), random.Random(7), 0
    for case in range(400):
        path.write_text(with_checksum(damaged(draw, text)))
        found = by_columns(path)
        if found is not None:
            read += 1
            mine, theirs = outcome(found), outcome(by_objects(path))
            assert mine == theirs, case
            if isinstance(mine, Problem) and isinstance(theirs, Problem):
                for field in fields(mine.arrays):
                    assert np.array_equal(getattr(mine.arrays, field.name), getattr(theirs.arrays, field.name)), case
    assert read > 20
