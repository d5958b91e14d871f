"""The site: every page from stored results, readable without JavaScript, with working links."""

import gzip
import json
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from opmark.core.errors import NothingSelectedError, OpMarkError
from opmark.leaderboards.fidelity.figures import FidelityFigures
from opmark.leaderboards.site import exhibition
from opmark.leaderboards.site.board import (
    Board,
    BoardDevice,
    BoardEntry,
    Instance,
    Outcome,
    format_cost,
    gap,
    rows_by_cost,
)
from opmark.leaderboards.site.exhibition import publish
from opmark.leaderboards.site.made_pages import finished
from opmark.leaderboards.site.page import PAGES, Site, instance_path, is_build, slug
from opmark.leaderboards.site.pages import device, entry, instance, look, predictor, schedules, standings, tracks
from opmark.leaderboards.site.pages.standings import ranking
from opmark.leaderboards.site.predictor_card import KindAccuracy, PredictorCard
from opmark.pages.gantt import Bar, GanttTimeline

TIMELINE = GanttTimeline(lanes=("d0",), bars=(Bar(lane="d0", start_ns=0, end_ns=10, label="n", kind="conv"),))


def board() -> Board:
    problem = Instance(
        name="inception",
        network="inception",
        cluster="pair",
        devices=2,
        units=9,
        bound=80,
        best_known=100,
        best_single=120,
        machines=(
            BoardDevice(name="d0", type="server", memory_bytes=2**30, provenance="measured", bundle="server/x-t1 abc"),
            BoardDevice(name="d1", type="edge", memory_bytes=2**29, provenance="analytic"),
        ),
        kinds=(("conv", 7, 0.9), ("pool", 2, 0.1)),
    )
    chain = replace(problem, name="chain <1>", best_single=100, scored=False, facts=(("seed", "7"),))
    good = Outcome(instance="inception", cost=100, quality=1.0, gain=1.0, planning_s=0.25, timeline=TIMELINE)
    poor = Outcome(instance="inception", cost=None, reason="device 'd0' needs 2 GiB", quality=0.0)
    return Board(
        name="latency",
        title="Inference latency",
        description="One request.",
        version="1.0.0",
        semantics="opsim1",
        objective="latency",
        instances=(problem, chain),
        entries=(
            BoardEntry(
                rank=1,
                name="heft",
                score=0.9,
                low=0.8,
                high=1.0,
                outcomes=(good, replace(good, instance="chain <1>", cost=125)),
                description="HEFT.",
            ),
            BoardEntry(rank=2, name="../x y", score=0.01, low=0.01, high=0.01, outcomes=(poor,)),
        ),
    )


def card() -> PredictorCard:
    return PredictorCard(
        name="server/1.0.0/x-t1",
        id="abc",
        device="server",
        target="x-t1",
        estimator="lightgbm",
        runtime="1.0",
        release="server/1.0.0",
        release_id="def",
        networks="fitted on two networks",
        kinds=(
            KindAccuracy(kind="conv", rows=90, groups=9, median=0.031, within_tenth=0.9, interval_factor=1.1),
            KindAccuracy(
                kind="rare", rows=1, groups=1, median=float("nan"), within_tenth=float("nan"), interval_factor=2.0
            ),
        ),
        data_card="# Release server <1.0.0>",
    )


class Links(HTMLParser):
    """Collects hrefs, sources, opened tags, and pictures without words."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.tags: list[str] = []
        self.mute: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        known = dict(attrs)
        if self.mute and tag == "title":
            self.mute.pop()
        if tag == "img" and not known.get("alt"):
            self.mute.append("img")
        if tag == "svg" and known.get("role") == "img":
            self.mute.append("svg")
        self.hrefs += [value or "" for name, value in attrs if name in {"href", "src"}]


@pytest.fixture
def site(tmp_path: Path) -> tuple[Path, ...]:
    return publish(tmp_path / "site", [board()], [card()])


def test_every_page_is_written_and_the_entrance_comes_first(site: tuple[Path, ...]) -> None:
    root = site[0].parent
    assert site[0].name == "index.html"
    assert len(site) == 2 + 2 + 2 + 2 + 1 + 2 + 4, (
        "entrance and board, entries, instances, devices, a predictor, schedules, the look"
    )
    assert {path for path in root.rglob("*") if path.is_file()} == set(site)
    assert all(path.resolve().is_relative_to(root.resolve()) for path in site)


def test_every_link_leads_to_a_page_and_none_leaves_the_site(site: tuple[Path, ...]) -> None:
    for path in site:
        page = Links()
        page.feed(path.read_text())
        for href in page.hrefs:
            assert "//" not in href
            file, _, fragment = href.partition("#")
            if fragment:
                assert f'id="{fragment}"' in (path.parent / file if file else path).read_text()
            assert not file or (path.parent / file).resolve() in {other.resolve() for other in site}, (
                f"{path.name}: {href}"
            )


def test_every_picture_says_in_words_what_it_shows(site: tuple[Path, ...]) -> None:
    pictures = 0
    for path in site:
        page = Links()
        page.feed(path.read_text())
        assert page.mute == [], path.name
        pictures += page.tags.count("svg")
    assert pictures > 10


def test_a_device_shows_where_its_costs_come_from(site: tuple[Path, ...]) -> None:
    root = site[0].parent
    server, edge = ((root / "devices" / f"{name}.html").read_text() for name in ("server", "edge"))
    assert "../predictors/server_1.0.0_x-t1.html" in server
    assert "analytic" in edge
    assert "No predictor of this device" in edge
    shown = Site(boards=(board(),), predictors=(card(),))
    assert shown.device_types() == ("edge", "server")
    found = [shown.predictor_of(machine) for _, _, machine in shown.devices()]
    assert [one.name if one else None for one in found] == ["server/1.0.0/x-t1", None] * 2
    assert shown.provenance() == {"edge": ("analytic",), "server": ("measured",)}
    assert "earlier build" not in server
    on_it = (root / "latency" / "instances" / "inception.html").read_text()
    assert '<a href="../../predictors/server_1.0.0_x-t1.html">measured</a>' in on_it


def test_a_predictor_that_was_built_again_is_still_found(tmp_path: Path) -> None:
    built = replace(card(), id="new")
    machine = replace(board().instances[0].machines[0], bundle="measured: server/x-t1 abc")
    assert (is_build(card(), machine), is_build(built, machine)) == (True, False)
    renewed = replace(board(), instances=(replace(board().instances[0], machines=(machine,)), board().instances[1]))
    assert Site(boards=(renewed,), predictors=(built,)).predictor_of(machine) == built
    publish(tmp_path / "site", [renewed], [built])
    text = (tmp_path / "site" / "devices" / "server.html").read_text()
    assert "instances below were made with an earlier build of it" in text


def test_of_several_versions_the_newest_stands_out(tmp_path: Path) -> None:
    newest = replace(card(), name="server/1.1.0/x-t1", id="newer")
    unused = replace(card(), name="server/0.9.0/x-t1", id="older")
    assert Site(boards=(), predictors=(unused, card(), newest)).newest_predictors("server") == [newest]
    root = publish(tmp_path / "site", [board()], [unused, card(), newest])[0].parent
    index = (root / "index.html").read_text()
    assert "server_1.1.0_x-t1.html" in index
    assert "server_1.0.0_x-t1.html" not in index
    assert "2 earlier" in index
    device = (root / "devices" / "server.html").read_text()
    shown, earlier = device.split("<details>")[:2]
    assert "server_1.1.0_x-t1.html" in shown
    assert "1 earlier, which no instance uses" in earlier
    assert "server_0.9.0_x-t1.html" in earlier


def test_a_predictor_shows_its_accuracy_and_the_card_of_its_data(site: tuple[Path, ...]) -> None:
    text = (site[0].parent / "predictors" / "server_1.0.0_x-t1.html").read_text()
    for shown in (
        "3.1 %",
        "÷ and × 1.10",
        "fitted on two networks",
        "<h3>Release server &lt;1.0.0&gt;</h3>",
        'href="#data"',
    ):
        assert shown in text
    assert "nan" not in text


def test_pages_are_whole_without_javascript(site: tuple[Path, ...]) -> None:
    text = (site[0].parent / "latency" / "index.html").read_text()
    before_script = text.split("<script")[0]
    for shown in ("heft", "0.900", "100 ns", "not scored", "invalid", "2/2", "0/2", "250 ms"):
        assert shown in before_script
    assert "chain &lt;1&gt;" in before_script
    assert "prefers-color-scheme: dark" in (site[0].parent / "assets" / "style.css").read_text()
    assert 'name="viewport"' in text


def test_an_entry_shows_every_instance_with_gap_and_schedule(site: tuple[Path, ...]) -> None:
    text = next(path for path in site if path.name == "heft.html").read_text()
    assert "25.0 %" in text
    assert text.count("<details") == 2
    assert text.count('data-script="../schedules/inception.js"') == 1
    script = next(path for path in site if path.name == "inception.js").read_text()
    assert script.startswith('drawSchedules("inception",')
    packed = script.split('"')[3]
    shared, _ = json.loads(gzip.decompress(b64decode(packed)))
    assert shared["entries"] == {"heft": 0}
    assert shared["labels"] == ["n"]


def test_a_refused_solution_says_why(site: tuple[Path, ...]) -> None:
    text = next(path for path in site if path.name.startswith("x-y-")).read_text()
    assert "device &#39;d0&#39; needs 2 GiB" in text


def test_an_instance_shows_facts_and_entries_best_first(site: tuple[Path, ...]) -> None:
    text = next(path for path in site if path.name == "inception.html").read_text()
    assert text.index("heft") < text.index("../x y")
    assert "best single device" in text


def test_one_very_poor_answer_does_not_make_good_ones_look_alike(tmp_path: Path) -> None:
    first, second = (replace(board().entries[0].outcomes[0], cost=cost) for cost in (100, 9_000))
    made = replace(
        board(),
        entries=tuple(
            replace(board().entries[0], name=name, outcomes=(outcome,))
            for name, outcome in (("a", first), ("b", second))
        ),
    )
    root = publish(tmp_path, [made])[0].parent
    text = (root / instance_path(made, "inception")).read_text()
    assert 'style="width: 25.00%"' in text
    assert '<i class="beyond" style="width: 100.00%"' in text
    assert "cut at 4 times the best" in text


def test_nothing_to_publish(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError):
        publish(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("a file where the folder should be")
    with pytest.raises(OpMarkError, match="cannot write"):
        publish(tmp_path / "site", [board()])


def test_the_same_board_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (publish(tmp_path / name, [board()]) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_pages_are_extensions() -> None:
    assert PAGES.names() == ("device", "entry", "instance", "look", "predictor", "schedules", "standings", "tracks")
    assert list(PAGES) == [
        device.PAGE,
        entry.PAGE,
        instance.PAGE,
        look.PAGE,
        predictor.PAGE,
        schedules.PAGE,
        standings.PAGE,
        tracks.PAGE,
    ]


def test_slugs_never_meet() -> None:
    assert slug("heft") == "heft"
    names = ["a b", "a-b", "a/b", "../a", "index", "", "ä"]
    assert len({slug(name) for name in names}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", slug(name)) for name in names)


def test_costs_gaps_and_order() -> None:
    shown = board()
    good = shown.entries[0].outcomes[0]
    assert gap(good, shown.instances[0]) == pytest.approx(0.25)
    assert gap(replace(good, cost=None), shown.instances[0]) is None
    assert shown.instances[0].headroom == pytest.approx(0.2)
    texts = [format_cost(1500, "ns"), format_cost(None, "ns"), format_cost(9_368_000, "us"), format_cost(10**10, "$")]
    assert texts == ["1.50 µs", "–", "9.37 ms", "$0.01"], "costs are whole steps, whatever a problem shows them in"
    assert [item.name for item, _ in rows_by_cost(shown, "inception")] == ["heft", "../x y"]
    assert "<a " not in ranking(shown)


def test_only_pages_of_a_changed_track_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(board(), name="other")
    publish(tmp_path, [board(), other], [card()])
    made: list[str] = []
    monkeypatch.setattr(
        exhibition, "finished", lambda document, source: made.append(document.path) or finished(document, source)
    )
    publish(tmp_path, [board(), other], [card()])
    assert made == []
    changed = replace(other, entries=(replace(other.entries[0], score=0.5), other.entries[1]))
    publish(tmp_path, [board(), changed], [card()])
    assert made
    assert not [path for path in made if path.startswith("latency/")]
    assert {path for path in made if path.startswith("other/")} == {
        path.relative_to(tmp_path).as_posix() for path in (tmp_path / "other").rglob("*.html")
    }


def test_executed_placements_stand_beside_the_board_and_the_device(tmp_path: Path) -> None:
    figures = FidelityFigures(
        device="server",
        track=board().name,
        problems=3,
        n=17,
        median_error=0.041,
        bias=0.01,
        tau=0.917,
        pairs=40,
        regret=0.012,
        noise_floor=0.006,
    )
    publish(tmp_path, [board()], [card()], [figures])
    pages = [path.read_text() for path in sorted(tmp_path.rglob("*.html")) if "Checked on real" in path.read_text()]
    assert len(pages) == 2
    assert all("0.917" in page and "4.1 %" in page for page in pages)
