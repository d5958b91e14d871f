"""Problems: what is refused and how it is said, files, identity, arrays."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, pair
from tests.sealing import unsealed

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.making.model_problem import load_cluster
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import ReferenceCosts, Tensor, Unit, UnitSplit
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.problem import Problem


def written(path: Path, problem: Problem, change: dict[str, object]) -> Path:
    save_problem(problem, path)
    path.write_text(json.dumps({**json.loads(unsealed(path.read_text())), **change}))
    return path


@settings(max_examples=40, deadline=None)
@given(examples.problems())
def test_a_file_gives_the_same_problem_back(tmp_path_factory: pytest.TempPathFactory, problem: Problem) -> None:
    path = tmp_path_factory.mktemp("problem") / "problem.json"
    save_problem(problem, path)
    again = load_problem(path)
    assert again == problem
    assert again.id == problem.id


def test_identity_is_what_decides_a_cost() -> None:
    problem = examples.heft_canonical()
    assert replace(problem, reference=ReferenceCosts(bound_ns=1, best_known_ns=2)).id == problem.id
    assert replace(problem, memory_mode="sum").id != problem.id


def test_a_cycle_is_named() -> None:
    problem = graph({"a": 1, "b": 1, "c": 1, "d": 1}, [("a", ["b"]), ("b", ["c"]), ("c", ["b", "d"])], pair())
    with pytest.raises(ContentError, match=r"the graph has a cycle: (b → c → b|c → b → c)"):
        checked(problem, "file")
    with pytest.raises(ContentError, match="cycle"):
        _ = problem.arrays


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"objective": "speed"},
            "objective: one of cost, hypervolume, latency, rent, serving, throughput, not 'speed'",
        ),
        ({"semantics": "opsim9"}, "semantics: this version knows opsim1"),
        ({"memory_mode": "none"}, "memory_mode: liveness, sum or stash"),
        ({"units": ()}, "units: at least one is needed"),
        ({"weights": {"w": -1}}, "weights.w: must not be negative"),
        ({"units": (Unit(name="a", exec_ns={"gpu": 1}),)}, r"units\.a\.exec_ns: runs on no device"),
        ({"units": (Unit(name="a", exec_ns={"x": -1}),)}, r"units\.a\.exec_ns\.x: must be a number of ns"),
        ({"units": (Unit(name="a", exec_ns={"x": float("nan")}),)}, r"units\.a\.exec_ns\.x: must be a number of ns"),
        ({"units": (Unit(name="a", exec_ns={"x": 1}, weights=("v",)),)}, "no weight is called 'v'"),
        ({"units": (Unit(name="a", exec_ns={"x": 1}),) * 2}, "the name appears twice"),
        ({"units": (Unit(name="a", exec_ns={"x": 1}, phase="sideways"),)}, "phase: one of forward, backward, update"),
        ({"units": (Unit(name="a", exec_ns={"x": 1}, workspace_bytes=-1),)}, "workspace_bytes: must not be negative"),
        ({"tensors": (Tensor(name="t", size_bytes=-1),)}, r"tensors\.t\.size_bytes: must not be negative"),
        ({"tensors": (Tensor(name="t", size_bytes=1, producer="z"),)}, "no unit is called 'z'"),
        ({"tensors": (Tensor(name="t", size_bytes=1, consumers=("z",)),)}, "no unit is called 'z'"),
        ({"tensors": (Tensor(name="t", size_bytes=1, consumers=("a", "a")),)}, "a unit appears twice"),
        ({"tensors": (Tensor(name="t", size_bytes=1, home="moon"),)}, "no device is called 'moon'"),
        ({"tensors": (Tensor(name="t", size_bytes=1, producer="a", home="d0"),)}, "only a graph input has one"),
        ({"tensors": (Tensor(name="t", size_bytes=1, boundary_ns={"x": -2}),)}, r"boundary_ns\.x"),
    ],
)
def test_wrong_content_is_named(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ContentError, match=sentence):
        checked(replace(graph({"a": 1}, [], pair()), **change), "file")


def test_many_findings_are_counted() -> None:
    units = tuple(Unit(name=f"u{i}", exec_ns={}) for i in range(12))
    with pytest.raises(ContentError, match="and 2 more"):
        checked(replace(graph({"a": 1}, [], pair()), units=units), "file")


def test_times_that_cannot_add_up_are_refused() -> None:
    cluster = Cluster(name="slow", devices=(device("d0"),), links=())
    units = tuple(Unit(name=f"u{i}", exec_ns={"x": 2**52}) for i in range(2000))
    with pytest.raises(ContentError, match="too large to add up"):
        _ = Problem(name="long", cluster=cluster, units=units).arrays


def test_a_file_with_unknown_keys_or_another_schema_is_refused(tmp_path: Path) -> None:
    problem = examples.heft_canonical()
    with pytest.raises(ContentError, match="colour: unknown key"):
        load_problem(written(tmp_path / "a.json", problem, {"colour": "red"}))
    with pytest.raises(ContentError, match="newer than"):
        load_problem(written(tmp_path / "b.json", problem, {"schema": 2}))
    with pytest.raises(ContentError, match=r"units: input should be a valid tuple"):
        load_problem(written(tmp_path / "c.json", problem, {"units": 3}))


CLUSTER = """
schema: 1
name: two
devices:
  - {name: a, type: x, memory_bytes: 1000}
  - {name: b, type: x, memory_bytes: 1000}
links:
  - {source: a, destination: b, latency_ns: 5, bandwidth_bytes_per_s: 1.0e+9}
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("b, type: x, memory_bytes: 1000", "b, type: x", r"devices\.1\.memory_bytes: missing"),
        (
            "b, type: x, memory_bytes: 1000",
            "b, type: x, memory_bytes: 0",
            r"devices\.b\.memory_bytes: must be positive",
        ),
        ("destination: b", "destination: c", "no device is called 'c'"),
        ("1.0e+9", "0", "bandwidth_bytes_per_s: must be positive"),
        ("latency_ns: 5", "latency_ns: -5", "latency_ns: must not be negative"),
        ("latency_ns: 5", "latency: 5", "latency: unknown key"),
        ("latency_ns: 5", "latency_ns: 5, points: [[8, 3], [4, 2]]", "ascending bytes"),
        ("destination: b", "destination: a", "links.a->a: a link joins two devices, not one with itself"),
        (
            "links:\n",
            "links:\n  - {source: a, destination: b, latency_ns: 1, bandwidth_bytes_per_s: 1.0e+9}\n",
            "links.a->b: appears 2 times",
        ),
        ("links:", "routes: [[b, a]]\nlinks:", "no link goes from 'b' to 'a'"),
        ("links:", "host: c\nlinks:", "host: no device is called 'c'"),
    ],
)
def test_a_wrong_cluster_is_named(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    assert len(load_cluster(path).devices) == 2
    path.write_text(CLUSTER.replace(old, new))
    with pytest.raises(ContentError, match=sentence) as caught:
        load_cluster(path)
    assert caught.value.where == str(path)


def test_a_named_route_is_taken() -> None:
    names = ("a", "hub", "b")
    links = tuple(
        Link(source=s, destination=d, latency_ns=ns, bandwidth_bytes_per_s=1e9)
        for s, d, ns in (("a", "b", 90), ("a", "hub", 10), ("hub", "b", 10))
    )
    devices = tuple(Device(name=name, type="x", memory_bytes=1) for name in names)
    direct = Cluster(name="c", devices=devices, links=links)
    assert direct.problems() == []
    from opmark.leaderboards.problem.routes import hop_ns, routes

    assert routes(direct)["a", "b"] == (0,)
    assert routes(replace(direct, routes=(("a", "hub", "b"),)))["a", "b"] == (1, 2)
    assert hop_ns(links[0], 10) == 100


def test_a_problem_is_as_certain_as_its_least_certain_device() -> None:
    chain = graph({"a": 1, "b": 2}, [("a", ["b"])], pair())
    assert chain.costs_from == "measured"
    for sources, found in ((("imported", "measured"), "imported"), (("imported", "analytic"), "analytic")):
        devices = tuple(replace(one, provenance=name) for one, name in zip(chain.cluster.devices, sources, strict=True))
        assert replace(chain, cluster=replace(chain.cluster, devices=devices)).costs_from == found


def test_features_name_what_a_problem_adds() -> None:
    chain = graph({"a": 1, "b": 2}, [("a", ["b"])], pair())
    assert chain.features == ()
    one, other = chain.cluster.devices
    first, last = chain.units
    split = UnitSplit(axis="row", parts=2, exec_ns={"x": 1}, join_ns={"x": 0})
    units = (replace(first, splits=(split,)), replace(last, phase="backward"))
    rich = replace(
        chain,
        cluster=replace(chain.cluster, devices=(one, replace(other, type="y"))),
        units=units,
        objective="cost",
        replication=True,
        micro_batches=2,
        interference={"x": {"conv": {"*": 1.5}}},
    )
    assert rich.features == ("replicas", "micro-batches", "prices", "slowdown", "splits", "unequal")
