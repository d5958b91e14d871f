"""Boards made from standings, and the site written from them."""

from dataclasses import replace
from pathlib import Path

import pytest

from opmark.core.errors import NothingSelectedError
from opmark.core.files import write_json
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import CostOrigin, Tensor, Unit
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.standings import Standings, rank_solutions
from opmark.leaderboards.scoring.track import Rules, Track
from opmark.leaderboards.site import exhibition
from opmark.leaderboards.site.board import SUBMITTED
from opmark.leaderboards.site.exhibition import board_of, board_of_track, publish

NAMES = ("stem", "left", "right", "join")


def problem(name: str = "diamond") -> Problem:
    """A stem, two branches that like different devices, and a join."""
    devices = tuple(Device(name=kind, type=kind, memory_bytes=10**9) for kind in ("a", "b"))
    links = tuple(
        Link(source=x, destination=y, latency_ns=5, bandwidth_bytes_per_s=1e9) for x, y in (("a", "b"), ("b", "a"))
    )
    costs = {"stem": (10, 10), "left": (20, 90), "right": (90, 20), "join": (10, 10)}
    return Problem(
        name=name,
        cluster=Cluster(name="pair", devices=devices, links=links),
        units=tuple(Unit(name=unit, exec_ns={"a": a, "b": b}) for unit, (a, b) in costs.items()),
        tensors=(
            Tensor(name="t0", size_bytes=0, producer="stem", consumers=("left", "right")),
            Tensor(name="t1", size_bytes=0, producer="left", consumers=("join",)),
            Tensor(name="t2", size_bytes=0, producer="right", consumers=("join",)),
        ),
        provenance=CostOrigin(model="our-diamond", bundles={"a": "d/1.0.0/x"}),
    )


def standings() -> Standings:
    split = Solution(device={"stem": "a", "left": "a", "right": "b", "join": "a"})
    single = Solution(device=dict.fromkeys(NAMES, "a"))
    wrong = Solution(device=dict.fromkeys(NAMES, "moon"))
    entries = {"split": split, "best-single-device": single, "lost": wrong}
    return rank_solutions([problem()], {name: {"diamond": found} for name, found in entries.items()}, track="tiny")


def test_the_board_says_what_the_standings_say() -> None:
    board = board_of([problem()], standings(), title="Tiny", version="1.0.0")
    assert (board.name, board.objective, board.semantics) == ("tiny", "latency", "opsim1")
    assert [(entry.rank, entry.name) for entry in board.entries] == [
        (1, "split"),
        (2, "best-single-device"),
        (3, "lost"),
    ]
    instance = board.instance("diamond")
    assert (instance.best_known, instance.best_single, instance.units) == (50, 130, 4)
    assert instance.network == "our-diamond"
    facts = dict(instance.facts)
    assert (facts["costs of a"], facts["tensors"], facts["longest path"]) == ("d/1.0.0/x", "3, 0 B", "3 units")
    assert [(machine.name, machine.provenance) for machine in instance.machines] == [
        ("a", "measured"),
        ("b", "measured"),
    ]
    assert [machine.bundle for machine in instance.machines] == ["d/1.0.0/x", ""]
    assert instance.kinds[0] == ("left", 1, pytest.approx(1 / 3))


def test_outcomes_hold_costs_schedules_and_reasons() -> None:
    board = board_of([problem()], standings(), title="Tiny")
    split, single, lost = (entry.outcome("diamond") for entry in board.entries)
    assert split
    assert single
    assert lost
    assert (split.cost, split.quality, split.gain) == (50, 1.0, 1.0)
    assert split.timeline
    assert {(arrow.source, arrow.destination) for arrow in split.timeline.arrows} == {("a", "b"), ("b", "a")}
    assert [curve.lane for curve in split.timeline.memory] == ["a", "b"]
    assert max(bar.end_ns for bar in split.timeline.bars) == 50
    assert single.gain == pytest.approx(0.0)
    assert (lost.cost, lost.timeline) == (None, None)
    assert "moon" in lost.reason


def test_registered_placers_have_descriptions() -> None:
    board = board_of([problem()], standings(), title="Tiny")
    words = {entry.name: entry.description for entry in board.entries}
    assert words["split"] == ""
    assert words["best-single-device"] == "Everything on the fastest device that holds it."
    assert words["lost"] == ""


def test_a_schedule_too_long_to_draw_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhibition, "BARS_AT_MOST", 3)
    board = board_of([problem()], standings(), title="Tiny")
    outcome = board.entries[0].outcome("diamond")
    assert outcome
    assert outcome.timeline is None
    assert outcome.cost == 50


def test_from_solutions_to_pages(tmp_path: Path) -> None:
    files = publish(tmp_path, [board_of([problem()], standings(), title="Tiny", name="tiny")])
    text = (tmp_path / "tiny" / "index.html").read_text()
    assert len(files) == 1 + 1 + 3 + 1 + 2 + 1 + 4
    assert "Tiny" in text
    assert "50.0 ns" in text


def test_a_track_shows_its_stored_solutions(tmp_path: Path) -> None:
    track = Track(folder=tmp_path / "tiny", rules=Rules(title="Tiny", version="1.0.0", description="One diamond."))
    save_problem(problem(), track.folder / "problems" / "diamond.json")
    with pytest.raises(NothingSelectedError):
        board_of_track(track)
    track.store("single", "diamond", Solution(device=dict.fromkeys(NAMES, "a")))
    board = board_of_track(track)
    assert (board.name, board.title, board.version) == ("tiny", "Tiny", "1.0.0")
    outcome = board.entries[0].outcome("diamond")
    assert outcome
    assert outcome.cost == 130


def test_the_board_shows_the_drop_and_says_what_protects_it(tmp_path: Path) -> None:
    track = Track(folder=tmp_path / "tiny", rules=Rules(title="Tiny", version="1.0.0"))
    names = ("one", "two", "three")
    for name in names:
        save_problem(problem(name), track.folder / "problems" / f"{name}.json")
    split = Solution(device={"stem": "a", "left": "a", "right": "b", "join": "a"})
    for name in names:
        track.store("table", name, split)
        track.store("own", name, Solution(device=dict.fromkeys(NAMES, "a")))
    kept = track.folder / "submissions" / "table"
    lost = {"score": 0.3, "low": 0.2, "high": 0.4, "instances": 3}
    write_json(kept / "owner.json", {"schema": 1, "public_key": "00"})
    write_json(kept / "counted.json", {"schema": 1, "sha256": "", "twins": lost, "unseen": lost, "source": "fresh"})
    board = board_of_track(track)
    table = next(entry for entry in board.entries if entry.name == "table")
    assert (table.score, table.origin, table.recalls) == (0.3, SUBMITTED, True)
    figures = {figure.name: figure.value for figure in table.figures}
    assert (figures["public"], figures["twins"], figures["hidden"]) == (1.0, 0.3, 0.3)
    assert figures["drop"] == pytest.approx(0.7)
    assert [entry.name for entry in board.entries] == ["own", "table"], "the best stored answers, and the worse rank"
    publish(tmp_path / "site", [board])
    text = (tmp_path / "site" / "tiny" / "index.html").read_text()
    assert "Protection of this board" in text
    assert text.count("recalls answers</span>") == 1
    assert all(f">{title}</th>" in text for title in ("public", "twins", "hidden", "drop"))


def test_scores_by_the_source_of_costs_are_columns_where_there_are_several() -> None:
    sure = problem()
    devices = tuple(replace(device, provenance="imported") for device in sure.cluster.devices)
    other = replace(problem("guess"), cluster=replace(sure.cluster, devices=devices))
    single = Solution(device=dict.fromkeys(NAMES, "a"))
    ranked = rank_solutions([sure, other], {"one": {"diamond": single, "guess": single}}, track="tiny")
    board = board_of([sure, other], ranked, title="Tiny")
    assert [figure.name for figure in board.entries[0].figures][:2] == ["measured", "imported"]
    assert [instance.costs_from for instance in board.instances] == ["measured", "imported"]
    alone = board_of([problem()], standings(), title="Tiny")
    assert "measured" not in [figure.name for figure in alone.entries[0].figures]
