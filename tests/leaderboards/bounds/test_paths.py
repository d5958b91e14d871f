"""The longest path counts every unit on its fastest device, and no transfer."""

from dataclasses import replace

from tests.leaderboards.examples import device, graph, pair

from opmark.leaderboards.bounds.paths import critical_path_ns

DIAMOND = graph({"a": 2, "b": 3, "c": 7, "d": 1}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(1000))


def test_the_longer_branch_counts() -> None:
    assert critical_path_ns(DIAMOND) == 2 + 7 + 1


def test_the_fastest_device_counts() -> None:
    fast = replace(DIAMOND.cluster, devices=(device("d0"), device("d1", "y")))
    units = tuple(replace(unit, exec_ns={"x": unit.exec_ns["x"], "y": 1}) for unit in DIAMOND.units)
    assert critical_path_ns(replace(DIAMOND, cluster=fast, units=units)) == 3
