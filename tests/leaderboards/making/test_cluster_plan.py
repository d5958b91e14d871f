"""Clusters by name: devices and links from files of their own."""

from pathlib import Path

import pytest
from tests.leaderboards.making.test_device_table import ANALYTIC, EFFICIENCY

from opmark.core.errors import ContentError, UnknownNameError
from opmark.leaderboards.making.cluster_plan import load_plan

PLAN = """
schema: 1
title: "Two accelerators behind one switch"
devices: {host: made, one: made, two: made}
links:
  - {between: [host, one], type: fast, port: switch}
  - {between: [host, two], type: fast, port: switch}
  - {between: [one, two], type: fast, port: air, half_duplex: true}
"""
LINKS = """
schema: 1
links:
  fast: {latency_ns: 10, bandwidth_bytes_per_s: 1.0e+9, source: its standard}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "devices/made.yaml": ANALYTIC,
        "devices/efficiency/made-up.yaml": EFFICIENCY,
        "clusters/pair.yaml": PLAN,
        "clusters/links.yaml": LINKS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_cable_is_a_link_each_way_and_a_port_one_per_direction(folder: Path) -> None:
    plan = load_plan(folder, "pair")
    assert plan.cluster.host == "host"
    assert len(plan.cluster.links) == 6
    ports = {(link.source, link.destination): link.port for link in plan.cluster.links}
    assert ports["host", "one"] == ports["host", "two"] != ports["one", "host"]
    assert ports["one", "two"] == ports["two", "one"] == "air"
    small = plan.with_memory({"one": 7})
    assert [device.memory_bytes for device in small.cluster.devices] == [1000, 7, 1000]


def test_unknown_clusters_and_links_are_refused(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="cluster"):
        load_plan(folder, "pears")
    (folder / "clusters" / "pair.yaml").write_text(PLAN.replace("type: fast, port: air", "type: slow, port: air"))
    with pytest.raises(ContentError, match="no link type is called 'slow'"):
        load_plan(folder, "pair")
