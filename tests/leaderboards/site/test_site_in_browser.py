"""The site in a real Chromium: no complaints, no requests, sorting, zooming, phones, dark pages."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.chromium import Browser
from tests.leaderboards.site.test_exhibition import problem, standings
from tests.leaderboards.site.test_site import card

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring.standings import rank_solutions
from opmark.leaderboards.site.exhibition import board_of, publish

PHONE = 360
# The look and the scripts of all pages, and the schedules that an entry's page loads for the instance that is open.
OF_THE_SITE = re.compile(r"^file:.*/(assets|schedules)/[^/]+$")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    board = board_of([problem()], standings(), title="Tiny", description="One diamond.", version="1.0.0")
    return publish(tmp_path_factory.mktemp("site"), [board], [card()])


def test_no_page_complains_asks_elsewhere_or_is_wider_than_a_phone(browser: Browser, pages: tuple[Path, ...]) -> None:
    for path in (page for page in pages if page.suffix == ".html"):
        browser.open(path, width=PHONE, height=740)
        assert browser.complaints() == [], path.name
        own = [path.resolve().as_uri()]
        assert [asked for asked in browser.requests() if not OF_THE_SITE.search(asked)] == own, path.name
        assert browser.value("document.documentElement.scrollWidth") <= PHONE, path.name


def test_a_click_on_a_heading_sorts(browser: Browser, pages: tuple[Path, ...]) -> None:
    browser.open(pages[0].parent / "tiny" / "index.html")
    names = "[...document.querySelectorAll('table.sortable')[0].tBodies[0].rows].map(row => row.cells[1].textContent)"
    before = browser.value(names)
    assert before == ["split", "best-single-device", "lost"]
    browser.value("document.querySelectorAll('table.sortable')[0].tHead.rows[0].cells[1].firstChild.click()")
    assert browser.value(names) == sorted(before)
    browser.value("document.querySelectorAll('table.sortable')[0].tHead.rows[0].cells[1].firstChild.click()")
    assert browser.value(names) == sorted(before, reverse=True)
    assert browser.complaints() == []


def test_a_script_draws_what_the_static_chart_shows(browser: Browser, pages: tuple[Path, ...]) -> None:
    texts = "[...document.querySelectorAll('.gantt WHAT')].map(one => one.textContent).sort().join()"
    charts = []
    for page in ("entries/split.html", "instances/diamond.html"):
        browser.open(pages[0].parent / "tiny" / page)
        browser.value("new Promise(done => setTimeout(done, 200))")
        shown = [browser.value(texts.replace("WHAT", what)) for what in (".captions text", ".axis", "rect > title")]
        shown.append(browser.value("document.querySelectorAll('.gantt .arrow').length"))
        shown.append(browser.value("document.querySelector('.legend').textContent.replace(/\\s+/g, '')"))
        charts.append(shown)
    assert charts[0] == charts[1]


def test_a_schedule_is_zoomed_by_button_and_key_and_moved(browser: Browser, pages: tuple[Path, ...]) -> None:
    browser.open(pages[0].parent / "tiny" / "entries" / "split.html")
    wide = "(() => { const p = document.querySelector('.pan'); return p.scrollWidth / p.clientWidth; })()"
    assert browser.value(wide) == pytest.approx(1, abs=0.01)
    browser.value("document.querySelector('.tools button[aria-label=\"Zoom in\"]').click()")
    assert browser.value(wide) == pytest.approx(2, abs=0.01)
    browser.value("document.querySelector('.pan').focus()")
    browser.press("+")
    assert browser.value(wide) == pytest.approx(4, abs=0.01)
    browser.value("document.querySelector('.pan').scrollLeft = 0")
    browser.press("ArrowRight")
    assert browser.value("document.querySelector('.pan').scrollLeft") > 0
    browser.press("0")
    assert browser.value(wide) == pytest.approx(1, abs=0.01)
    assert browser.complaints() == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")


def test_a_link_to_a_schedule_opens_it(browser: Browser, pages: tuple[Path, ...]) -> None:
    browser.open(pages[0].parent / "tiny" / "entries" / "lost.html")
    browser.value("document.querySelector('details').open = false")
    browser.value("location.hash = '#on-diamond'")
    browser.value("new Promise(done => setTimeout(done, 0))")
    assert browser.value("document.getElementById('on-diamond').open") is True


def test_pages_follow_the_reader_into_the_dark(browser: Browser, pages: tuple[Path, ...]) -> None:
    colours = []
    for scheme in ("light", "dark"):
        browser.open(pages[0], scheme=scheme)
        colours.append(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


def test_nothing_is_lost_without_scripts(browser: Browser, pages: tuple[Path, ...]) -> None:
    page = pages[0].parent / "tiny" / "instances" / "diamond.html"
    browser.open(page)
    scripted = browser.value("document.querySelectorAll('.plot rect').length")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.load(page)
        root = browser.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
        found = browser.call("DOM.querySelectorAll", nodeId=root, selector=".plot rect")["nodeIds"]
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert len(found) == scripted > 4


def test_rows_are_chosen_by_the_source_of_their_costs(browser: Browser, tmp_path: Path) -> None:
    sure = problem()
    devices = tuple(replace(device, provenance="analytic") for device in sure.cluster.devices)
    doubtful = replace(problem("guess"), cluster=replace(sure.cluster, devices=devices))
    single = Solution(device=dict.fromkeys(("stem", "left", "right", "join"), "a"))
    ranked = rank_solutions([sure, doubtful], {"one": {"diamond": single, "guess": single}}, track="tiny")
    publish(tmp_path, [board_of([sure, doubtful], ranked, title="Tiny", version="1.0.0")], [])
    browser.open(tmp_path / "tiny" / "index.html")
    shown = "[...document.querySelectorAll('.matrix tbody tr')].filter(row => !row.hidden)"
    rows = f"{shown}.map(row => row.cells[1].textContent)"
    assert browser.value(rows) == ["measured", "analytic"]
    choose = "(() => { const s = document.querySelector('.tabletools select'); s.value = 'analytic';"
    browser.value(f"{choose} s.dispatchEvent(new Event('change')); }})()")
    assert browser.value(rows) == ["analytic"]
    assert browser.complaints() == []
